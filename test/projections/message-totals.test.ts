// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fold } from "../../projections/projection.ts";
import { stats } from "../../projections/message-totals.ts";
import { histories } from "./generate-history.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";
import { countCases } from "../harness/case-count.ts";

test("the counts equal the number of events over all runs", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const count = (wanted: string) => events.filter(({ type }) => type === wanted).length;
      expect(fold(stats, stats.initial(), events)).toEqual({
        sent: count("DirectMessageSent"),
        skipped: count("DirectMessageSkipped"),
        failed: count("DirectMessageFailed"),
        contacted: events.filter(({ data }) => "reason" in data && data.reason === "already_contacted").length,
      });
    }),
    { numRuns: countCases(1_000) },
  );
});

test("dry runs and messages in doubt do not count", () => {
  const recipient = { id: "101", username: "ann" };
  const state = given(stats, [
    { type: "RunStarted", data: { run_id: "r", dry_run: true } },
    { type: "DryRunFinished", data: { run_id: "r", reason: "completed", would_send: 5, would_skip: 3 } },
    { type: "DirectMessageInDoubt", data: { attempt_id: "a", run_id: "r2", recipient, detail: "" } },
  ]);
  expect(state).toEqual({ sent: 0, skipped: 0, failed: 0, contacted: 0 });
});
