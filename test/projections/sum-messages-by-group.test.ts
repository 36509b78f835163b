// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { results, type Results } from "../../projections/message-outcomes-and-reactions.ts";
import { fold } from "../../projections/projection.ts";
import { sumMessagesByGroup } from "../../projections/sum-messages-by-group.ts";
import { countCases } from "../harness/case-count.ts";
import { testLog } from "../harness/in-process/number-and-fold-events.ts";
import { histories } from "./generate-history.ts";
import { messages } from "./generate-message-history.ts";

/** Sums up a state. Before the given step of the work, calls `meanwhile`. */
function sumsIn(state: Results, meanwhile: (step: number) => void = () => undefined) {
  const steps = sumMessagesByGroup(state);
  for (let number = 0; ; number++) {
    meanwhile(number);
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function foldAll(events: readonly Recorded[]): Results {
  return fold(results, results.initial(), events);
}

test.each([
  ["any history", histories().map(({ events }) => events)],
  ["messages of two campaigns", messages],
])("in %s, sums that are kept from event to event equal those of a new fold", (_name, logs) => {
  fc.assert(
    fc.property(logs, (events) => {
      const state = results.initial();
      for (const [at, event] of events.entries()) {
        fold(results, state, [event]);
        expect(sumsIn(state)).toEqual(sumsIn(foldAll(events.slice(0, at + 1))));
      }
      const attempted = sumsIn(state).map((sums) => sums.messages.attempted);
      expect(attempted.reduce((sum, count) => sum + count, 0)).toBe(state.messages.size);
    }),
    { numRuns: countCases(100) },
  );
});

const attempt = (log: ReturnType<typeof testLog>, run_id: string): Recorded => {
  const number = String(log.events.length);
  const recipient = { id: number, username: `person${number}` };
  const named = { template: "t", template_name: "Text", variant: "A", text: "Hi", day: "2026-11-20" };
  log.add("DirectMessageAttempted", { attempt_id: number, recipient, run_id, ...named });
  return log.events.at(-1)!;
};

test.each(["r1", "r2"])("a message of run %s that is recorded between two steps counts the next time", (run) => {
  const log = testLog();
  for (let count = 0; count < 1_000; count++) attempt(log, "r1");
  const before = [...log.events];
  const late = attempt(log, run);
  let steps = 0;
  sumsIn(foldAll(before), () => void steps++);
  for (let at = 0; at < steps; at++) {
    const state = foldAll(before);
    sumsIn(state, (step) => void (step === at && fold(results, state, [late])));
    expect(sumsIn(state)).toEqual(sumsIn(foldAll(log.events)));
  }
  expect(steps).toBeGreaterThan(5);
});

test("sums leave out a group that began after their first step, though another caller has summed it up", () => {
  const log = testLog();
  for (let count = 0; count < 1_000; count++) attempt(log, "r1");
  const state = foldAll(log.events);
  const sums = sumsIn(state, (step) => {
    if (step !== 1) return;
    fold(results, state, [attempt(log, "r2")]);
    expect(sumsIn(state)).toHaveLength(2);
  });
  expect(sums.map(({ messages: { attempted } }) => attempted)).toEqual([1_000]);
});
