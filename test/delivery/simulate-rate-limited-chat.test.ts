// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { slackHours } from "./simulate-rate-limited-chat.ts";

test("a chat limited to a message a second receives an hour of five clicks a second", async () => {
  const report = await slackHours(1, 5);
  expect(report.clicks).toBe(18_000);
  expect(report.digests).toBeGreaterThan(10);
  expect(report.messages).toBeLessThan(3_600);
  expect(report.refusalsAMinute).toBeLessThanOrEqual(1);
  // A digest with all waiting clicks is sent when the oldest one has waited for 30 s. The network's pauses may delay it
  // further.
  expect(report.lagMaxS).toBeLessThan(45);
});
