// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { createStates } from "../../projections/fold-states.ts";
import { foldToMoment } from "../../src/commands/shared/as-of-option.ts";
import { logInMemory } from "../history/log-in-memory.ts";
import { histories } from "../projections/generate-history.ts";
import { countCases, countSituations } from "../harness/case-count.ts";

const CASES = { numRuns: countCases(1_000) };

test("a fold to a position or a time equals the states of the events until then", async () => {
  const terminal = { env: {}, out() {}, err() {}, interactive: false, signal: new AbortController().signal };
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(histories(), fc.nat(150), async ({ events }, cut) => {
      const to = Math.min(cut, events.length);
      const names = ["stats", "quota", "contacts", "clicks"] as const;
      const expected = createStates(names);
      for (const event of events.slice(0, to)) expected.evolve(event);
      const last = events[to - 1];
      const moments = [{ to }, { until: new Date(last === undefined ? 0 : Date.parse(last.time) + 999) }];
      for (const moment of moments) {
        const folded = await foldToMoment(terminal, { ...logInMemory(events), erasedTo: 0 }, names, moment);
        expect(folded.states).toEqual(expected.all());
        expect([folded.position, folded.time]).toEqual([to, last?.time]);
      }
      sent += expected.get("stats").sent;
    }),
    CASES,
  );
  // Enough histories must contain messages; otherwise the comparison would prove nothing.
  expect(sent).toBeGreaterThan(countSituations(20));
});
