// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { decodeState, encodeState } from "../../projections/encode-state.ts";
import { fold } from "../../projections/projection.ts";
import { results, type Results } from "../../projections/message-outcomes-and-reactions.ts";
import { rewindResults } from "../../projections/rewind-results.ts";
import { countCases, isWhole } from "../harness/case-count.ts";
import { testLog } from "../harness/in-process/number-and-fold-events.ts";
import { messages } from "./generate-message-history.ts";
import { histories } from "./generate-history.ts";

function rewound(now: Results, position: number): Results {
  const steps = rewindResults(now, position);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function foldedUpTo(events: readonly Recorded[], position: number): Results {
  const before = events.filter((event) => event.position <= position);
  return fold(results, results.initial(), before);
}

test.each([
  ["any history", histories().map(({ events }) => events)],
  ["messages of two campaigns", messages],
])("in %s, rewinding results to a position equals a fold up to it", (_name, logs) => {
  const seen = { superseded: 0, doubted: 0, revoked: 0, clicks: 0 };
  fc.assert(
    fc.property(logs, (events) => {
      const now = foldedUpTo(events, Infinity);
      const stored = decodeState(encodeState(now)) as Results;
      for (let position = 0; position <= events.length; position++) {
        const folded = encodeState(foldedUpTo(events, position));
        expect(encodeState(rewound(now, position))).toBe(folded);
        expect(encodeState(rewound(stored, position))).toBe(folded);
      }
      expect(encodeState(now)).toBe(encodeState(stored));
      for (const { superseded, doubt, revoked, tracked } of now.messages.values()) {
        if (superseded >= 0) seen.superseded++;
        if (doubt !== undefined) seen.doubted++;
        if ((revoked?.tracked.clicks.length ?? 0) > 0) seen.revoked++;
        if ((tracked?.clicks.length ?? 0) > 0) seen.clicks++;
      }
    }),
    { numRuns: countCases(150) },
  );
  // An ordinary test run plays only some of the histories, which may lack some of these rare situations.
  if (!isWhole) return;
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
});

test("later events do not change rewound results, and a fold goes on from them", () => {
  fc.assert(
    fc.property(messages, fc.nat(), (events, at) => {
      const half = Math.ceil(events.length / 2);
      const now = foldedUpTo(events, half);
      const position = at % (half + 1);
      const state = rewound(now, position);
      fold(results, now, events.slice(half));
      expect(encodeState(state)).toBe(encodeState(foldedUpTo(events, position)));
      const next = fold(results, state, events.slice(position));
      expect(encodeState(next)).toBe(encodeState(foldedUpTo(events, Infinity)));
      expect(encodeState(now)).toBe(encodeState(next));
    }),
    { numRuns: countCases(300) },
  );
});

test.each([1_000, 9_000])("with %d newer messages, events folded between two rewind steps change nothing", (newer) => {
  const log = testLog();
  const attempt = (number: number) => {
    const [attempt_id, recipient] = [`a${log.events.length}`, { id: `${number}`, username: `person${number}` }];
    const links = [`go.example/${number % 50}`];
    const sending = { run_id: "r", text: "Hi", variant: "A", day: "2026-11-20", links };
    log.add("DirectMessageAttempted", { attempt_id, recipient, ...sending });
    return { attempt_id, recipient, run_id: "r" };
  };
  const send = (attempted: ReturnType<typeof attempt>) =>
    log.add("DirectMessageSent", { ...attempted, message_id: "m", settled_by: "answer" });
  const open = Array.from({ length: 6_000 }, (_, number) => {
    const attempted = attempt(number);
    if (number % 10 > 0) send(attempted);
    return attempted;
  }).filter((_, number) => number % 10 === 0);
  const position = log.events.length;
  const folded = encodeState(foldedUpTo(log.events, position));
  for (let number = 0; number < newer; number++) send(attempt(number));
  const now = foldedUpTo(log.events, Infinity);
  const steps = rewindResults(now, position);
  let taken = 0;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) {
      expect(encodeState(step.value)).toBe(folded);
      break;
    }
    taken++;
    const before = log.events.length;
    // The first and the last open message are sent. Then a recipient near each end of the list gets one more message.
    for (const attempted of [open.shift()!, open.pop()!]) send(attempted);
    for (const number of [taken, 5_990 - taken]) send(attempt(number));
    log.add("DirectMessagesSeen", { recipient: { id: `${taken + 100}` }, seen_at: "2027-01-01T00:00:00.000Z" });
    fold(results, now, log.events.slice(before));
  }
  expect(taken).toBeGreaterThan(10);
});
