// These tests call the code directly.
import { expect, test } from "bun:test";
import type { EventType, Folded } from "../../events/event-types-and-codec.ts";
import { news, POSITIONS_MAX } from "../../projections/news.ts";
import { fold } from "../../projections/projection.ts";
import { RECENT_LINKS_MAX, suspected } from "../../projections/clicks-suspected-as-networks-own.ts";
import { DAY_MS, HOUR_MS } from "../../projections/parse-log-times.ts";

const START = Date.parse("2026-11-20T00:00:00.000Z");

let position = 0;
const event = (at: number, type: EventType, data: object): Folded =>
  ({ type, data, position: ++position, version: 1, time: new Date(START + at).toISOString() }) as unknown as Folded;

const abandoned = (at: number, detail: string, sources: readonly unknown[] = [1]): Folded => {
  const requests = [{ sources, attempt: 8, detail, refused: false }];
  return event(at, "DispatchAbandoned", { channel: "chat", lane: "clicks", low_watermark: 1, requests });
};

const folded = (events: Iterable<Folded>) => fold(news, news.initial(), events);

test("counts of single events are kept for three days, with their first positions", () => {
  const replies = Array.from({ length: 500 }, (_, at) =>
    event(at * HOUR_MS, "DirectMessageReceived", { recipient: {}, message_id: "", received_at: "" }),
  );
  const { quarters, sums } = folded(replies);
  expect([quarters.size, sums.size]).toEqual([3 * 24 + 2, 500]);
  const many = Array.from({ length: 40 }, () => event(0, "BackupMade", { position: 1 }));
  const [kinds] = folded(many).quarters.values();
  const counted = kinds?.get("BackupMade");
  expect([counted?.count, counted?.positions.length]).toEqual([40, POSITIONS_MAX]);
});

test("runs and troubles are bounded, however many there are", () => {
  const runs = Array.from({ length: 5_000 }, (_, at) => event(at, "RunStarted", { run_id: `r${at}`, dry_run: false }));
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const word = (at: number) => at.toString(26).replaceAll(/./g, (digit) => letters[Number.parseInt(digit, 26)] ?? "");
  const troubles = Array.from({ length: 5_000 }, (_, at) => abandoned(at, `refused as ${word(at)}`));
  const state = folded([...runs, ...troubles]);
  expect(state.runs.size).toBeLessThanOrEqual(1_000);
  expect(state.runs.has("r4999")).toBe(true);
  expect(state.troubles.size).toBeLessThanOrEqual(1_000);
});

test("failures of one cause are one trouble, told apart neither by numbers nor by ids, until an hour passes", () => {
  const { troubles } = folded([
    abandoned(0, "the request 17 was refused (trace 4fa1)", [[1, 5]]),
    abandoned(HOUR_MS, "the request 18 was refused (trace 99b0)", [9]),
    abandoned(3 * HOUR_MS, "the request 19 was refused (trace 0c11)"),
    abandoned(3 * HOUR_MS, "the message is too long"),
  ]);
  expect([...troubles.values()].map(({ count, first, last }) => [count, first - START, last - START])).toEqual([
    [6, 0, HOUR_MS],
    [1, 3 * HOUR_MS, 3 * HOUR_MS],
    [1, 3 * HOUR_MS, 3 * HOUR_MS],
  ]);
});

test("an outcome found after the run's end changes its counts, and not its time", () => {
  const message = { run_id: "r", attempt_id: "a" };
  const { runs } = folded([
    event(0, "RunStarted", { run_id: "r", dry_run: false }),
    event(1_000, "DirectMessageInDoubt", message),
    event(1_500, "DirectMessageInDoubt", message),
    event(2_000, "RunFinished", { run_id: "r", reason: "completed" }),
    event(DAY_MS, "DirectMessageSent", message),
  ]);
  expect(runs.get("r")).toMatchObject({ sent: 1, doubts: [], last: START + 2_000, end: "completed" });
});

test("clicks are counted by link for the first links of a quarter of an hour, and together for all others", () => {
  const clicks = Array.from({ length: RECENT_LINKS_MAX + 20 }, (_, at) =>
    event(at, "LinkClicked", { domain: "go.example", short_code: `c${at}`, bot: at % 2 === 0 }),
  );
  const [recent] = fold(suspected, suspected.initial(), clicks).recent.values();
  expect([recent?.links.size, recent?.others]).toEqual([RECENT_LINKS_MAX, { clicks: 10, bots: 10, suspected: 0 }]);
  expect([recent?.first, recent?.last]).toEqual([START, START + RECENT_LINKS_MAX + 19]);
});

test("counts of three days are kept when the clock is set back on one of them, so that a day has 25 hours", () => {
  const reply = (at: number) => event(at, "DirectMessageReceived", { recipient: {}, message_id: "", received_at: "" });
  const { quarters } = folded([reply(0), reply(3 * DAY_MS + HOUR_MS - 1)]);
  expect(quarters.size).toBe(2);
});
