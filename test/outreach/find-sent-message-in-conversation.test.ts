// These tests call the code directly.
import { expect, test } from "bun:test";
import { findSent, reachesBack } from "../../src/outreach/settle-messages-in-doubt.ts";

const TWO_DAYS_MS = 48 * 3_600_000;
const SENT_AT = "2026-03-01T08:00:00.000Z";
const attempt = { text: "Hi Ann", attempted_at: SENT_AT };
const dm = (more: Partial<{ senderId: string; text: string; afterMs: number }> = {}) => ({
  id: "9",
  senderId: more.senderId ?? "1",
  text: more.text ?? "Hi Ann",
  createdAt: Date.parse(SENT_AT) + (more.afterMs ?? 400),
});

test.each([
  ["our text is found", dm(), true],
  ["our text is found if it is committed 2 minutes late", dm({ afterMs: 120_000 }), true],
  ["our text is found on a clock that is a day behind", dm({ afterMs: -86_400_000 }), true],
  ["our text is found with other white space around it", dm({ text: " Hi Ann\n" }), true],
  ["the recipient's echo of our text is not found", dm({ senderId: "2" }), false],
  ["another text is not found", dm({ text: "Hi Anna" }), false],
])("%s", (_what, message, isOurs) => {
  expect(findSent([dm({ text: "Hello?" }), message], attempt, "1")).toEqual(isOurs ? message : undefined);
});

test("our text is found with differently composed characters", () => {
  const found = findSent([dm({ text: "Cafe\u0301" })], { ...attempt, text: "Caf\u00e9" }, "1");
  expect(found).toBeDefined();
});

test("a full page of newer messages does not reach back to the attempt", () => {
  const newer = [dm({ senderId: "2" }), dm({ senderId: "2" })];
  expect(reachesBack(newer, attempt, 3)).toBe(true);
  expect(reachesBack(newer, attempt, 2)).toBe(false);
  expect(reachesBack([...newer, dm({ afterMs: -TWO_DAYS_MS - 1 })], attempt, 3)).toBe(true);
  expect(reachesBack([...newer, dm({ afterMs: -TWO_DAYS_MS })], attempt, 3)).toBe(false);
});

test("our text is found if the network turned a bare domain into a link", () => {
  const written = { ...attempt, text: "Hi Ann, see example.com/a" };
  expect(findSent([dm({ text: "Hi Ann, see http://example.com/a" })], written, "1")).toBeDefined();
  expect(findSent([dm({ text: "Hi Ann, see http://example.com/b" })], written, "1")).toBeUndefined();
});
