// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { eventSpecs, type Recorded } from "../../events/event-types-and-codec.ts";
import { projectionOf, PROJECTION_NAMES } from "../../projections/all.ts";
import { fold } from "../../projections/projection.ts";
import { decodeState, encodeState } from "../../projections/encode-state.ts";
import { histories } from "./generate-history.ts";
import { countCases } from "../harness/case-count.ts";

const RUNS = { numRuns: countCases(1_000) };

describe.each(PROJECTION_NAMES)("%s", (name) => {
  const projection = projectionOf(name);
  const folded = (events: Iterable<Recorded>) => fold(projection, projection.initial(), events);

  test("gives the same state folded at once, in parts, or from any snapshots", () => {
    fc.assert(
      fc.property(histories(), fc.array(fc.nat(150), { maxLength: 4 }), ({ events }, cuts) => {
        const atOnce = encodeState(folded(events));
        const bounds = [0, ...cuts.map((cut) => Math.min(cut, events.length)).sort((a, b) => a - b), events.length];
        let parts = projection.initial();
        let restored = projection.initial();
        for (const [index, from] of bounds.entries()) {
          const part = events.slice(from, bounds[index + 1]);
          parts = fold(projection, parts, part);
          restored = decodeState(encodeState(fold(projection, restored, part)));
        }
        // The states are compared as texts, because folds may depend on the order of Maps.
        expect(encodeState(parts)).toBe(atOnce);
        expect(encodeState(restored)).toBe(atOnce);
      }),
      RUNS,
    );
  });

  test("gives the same state with a snapshot after every event", () => {
    fc.assert(
      fc.property(histories(60), ({ events }) => {
        let state = projection.initial();
        for (const event of events) state = decodeState(encodeState(projection.evolve(state, event)));
        expect(state).toEqual(folded(events));
      }),
      RUNS,
    );
  });

  test("changes only with events of its declared types", () => {
    fc.assert(
      fc.property(histories(), ({ events }) => {
        const named = events.filter(({ type }) => projection.types.includes(type));
        expect(encodeState(folded(named))).toBe(encodeState(folded(events)));
      }),
      RUNS,
    );
  });
});

test("the generated histories contain every event type", () => {
  const told = new Set<string>();
  fc.assert(
    fc.property(histories(), ({ events }) => {
      for (const { type } of events) told.add(type);
    }),
    // With fewer histories, a rare type would sometimes be missing.
    { numRuns: 500 },
  );
  expect(eventSpecs.map(({ type }) => type).filter((type) => !told.has(type))).toEqual([]);
});
