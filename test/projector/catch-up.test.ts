// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore, Query } from "eventstore-lite";
import * as fc from "fast-check";
import type { Event, Recorded } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { fold } from "../../projections/projection.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { createStates } from "../../projections/fold-states.ts";
import { catchUpStates } from "../../src/projector/fold-range.ts";
import { histories } from "../projections/generate-history.ts";
import { countCases } from "../harness/case-count.ts";

/** Fake store with the part that folding needs, which reads events in memory in small batches. */
function memory(events: readonly Recorded[]) {
  const reads: Query[] = [];
  const store = {
    async *readFolded(query: Query) {
      reads.push(query);
      const { from = 1, to = Infinity, types } = query;
      const matching = events.filter(
        ({ position, type }) => position >= from && position <= to && (types?.includes(type) ?? true),
      );
      for (let at = 0; at < matching.length; at += 7) yield matching.slice(at, at + 7);
    },
  };
  return { store: store as unknown as EventStore<Event>, reads };
}

test("a catch-up folds each event once from any start positions and over any stops", async () => {
  await fc.assert(
    fc.asyncProperty(
      histories(80),
      fc.array(fc.nat(80), { minLength: PROJECTION_NAMES.length, maxLength: PROJECTION_NAMES.length }),
      fc.array(fc.nat(100), { maxLength: 4 }),
      async ({ events }, starts, stops) => {
        const to = events.length;
        const positions = new Map(PROJECTION_NAMES.map((name, at) => [name, Math.min(starts[at] ?? 0, to)]));
        const partly = PROJECTION_NAMES.map((name) => {
          const seen = events.slice(0, positions.get(name));
          return [name, fold(projectionOf(name), projectionOf(name).initial(), seen)] as const;
        });
        const states = createStates(PROJECTION_NAMES, new Map(partly));
        const lowest = Math.min(...positions.values());
        const met: number[] = [];
        const onStop = (position: number): void => {
          met.push(position);
          for (const reached of positions.values()) expect(reached).toBeGreaterThanOrEqual(position);
        };
        await catchUpStates(memory(events).store, states, positions, { to, stops, onStop });
        for (const name of PROJECTION_NAMES) {
          const atOnce = fold(projectionOf(name), projectionOf(name).initial(), events);
          expect(encodeState(states.get(name))).toBe(encodeState(atOnce));
          expect(positions.get(name)).toBe(to);
        }
        for (const stop of stops) if (stop > lowest && stop <= to) expect(met).toContain(stop);
      },
    ),
    { numRuns: countCases(1_000) },
  );
});

test("an interrupted catch-up leaves each projection with the state of its position", async () => {
  await fc.assert(
    fc.asyncProperty(histories(80), fc.nat(12), fc.nat(60), async ({ events }, batches, ahead) => {
      const abort = new AbortController();
      const positions = new Map(PROJECTION_NAMES.map((name) => [name, name === "stats" ? ahead : 0]));
      const start = fold(projectionOf("stats"), projectionOf("stats").initial(), events.slice(0, ahead));
      const states = createStates(PROJECTION_NAMES, new Map([["stats", start]]));
      let told = 0;
      const onProgress = (): void => {
        if (told++ === batches) abort.abort();
      };
      await catchUpStates(memory(events).store, states, positions, {
        to: events.length,
        onProgress,
        signal: abort.signal,
      });
      for (const [name, position] of positions) {
        const atOnce = fold(projectionOf(name), projectionOf(name).initial(), events.slice(0, position));
        expect(encodeState(states.get(name))).toBe(encodeState(atOnce));
      }
    }),
    { numRuns: countCases(1_000) },
  );
});

test("a catch-up reads only the types of a projection that lags behind the others", async () => {
  const { store, reads } = memory([]);
  const positions = new Map(PROJECTION_NAMES.map((name) => [name, name === "quota" ? 10 : 40]));
  await catchUpStates(store, createStates(PROJECTION_NAMES), positions, { to: 50 });
  expect(reads).toEqual([
    { from: 11, to: 40, types: projectionOf("quota").types },
    { from: 41, to: 50 },
  ]);
});
