// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fold } from "../../projections/projection.ts";
import { noMessages, stats } from "../../projections/message-totals.ts";
import { timeline } from "../../projections/message-outcomes-by-quarter-hour.ts";
import { histories } from "./generate-history.ts";

test("the counts of all quarters add up to the all-time counts", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const sums = noMessages();
      for (const counts of fold(timeline, timeline.initial(), events).quarters.values()) {
        sums.sent += counts.sent;
        sums.skipped += counts.skipped;
        sums.failed += counts.failed;
        sums.contacted += counts.contacted;
      }
      expect(sums).toEqual(fold(stats, stats.initial(), events));
    }),
    { numRuns: 300 },
  );
});

test("each message counts in the quarter of an hour of its outcome", () => {
  const message = { attempt_id: "a", run_id: "r", recipient: { id: "1", username: "ada" } };
  const sent = { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } } as const;
  const at = (position: number, time: string) => ({ ...sent, position, version: position, time });
  const state = fold(timeline, timeline.initial(), [
    at(1, "2026-11-20T10:14:59.999Z"),
    at(2, "2026-11-20T10:15:00.000Z"),
    at(3, "2026-11-20T10:29:59.999Z"),
  ]);
  const start = Date.parse("2026-11-20T10:00:00.000Z");
  expect([...state.quarters]).toEqual([
    [start, { ...noMessages(), sent: 1 }],
    [start + 15 * 60_000, { ...noMessages(), sent: 2 }],
  ]);
});
