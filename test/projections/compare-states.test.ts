// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { fold } from "../../projections/projection.ts";
import { decodeState, encodeState } from "../../projections/encode-state.ts";
import { differences, listMembers } from "../../src/projector/compare-states.ts";
import { histories } from "./generate-history.ts";
import { countCases } from "../harness/case-count.ts";

test("a state does not differ from its own snapshot", async () => {
  await fc.assert(
    fc.asyncProperty(histories(), fc.constantFrom(...PROJECTION_NAMES), async ({ events }, name) => {
      const state = fold(projectionOf(name), projectionOf(name).initial(), events);
      expect(await differences(decodeState(encodeState(state)), state)).toEqual([]);
    }),
    { numRuns: countCases(1_000) },
  );
});

test("each difference names its path and both values", async () => {
  const stored = { sent: 1, days: new Map([["2026-11-20", 3]]), list: ["a"], gone: new Map([["x", 1]]) };
  const rebuilt = { sent: 2, days: new Map([["2026-11-20", 4]]), list: ["a", "b"] };
  expect(await differences(stored, rebuilt)).toEqual([
    "sent: stored 1, rebuilt 2",
    "days.2026-11-20: stored 3, rebuilt 4",
    'list.1: stored nothing, rebuilt "b"',
    'gone: stored [["x",1]], rebuilt nothing',
  ]);
  expect(await differences(1, 2)).toEqual(["state: stored 1, rebuilt 2"]);
});

test("at most 20 differences are listed", async () => {
  const thousand = Array.from({ length: 1_000 }, (_, index) => index);
  expect(await differences(thousand, [])).toHaveLength(20);
});

test("Maps of the same entries in another order differ", async () => {
  const links = (...keys: string[]) => ({ links: new Map(keys.map((key) => [key, { clicks: 1 }])) });
  expect(await differences(links("a", "b"), links("b", "a"))).toEqual(["links: stored in another order"]);
  expect(await differences(links("a", "b"), links("a", "b"))).toEqual([]);
});

test("a Map and an object differ, even when both are empty", async () => {
  expect(await differences({ open: {} }, { open: new Map() })).toHaveLength(1);
  expect(await differences({ open: new Map([["a", new Map()]]) }, { open: new Map([["a", {}]]) })).toHaveLength(1);
});

test("differing members are named once, without the keys of their entries", async () => {
  const stored = { people: new Map([["@ann.b", { status: "open", name: "x" }]]), ids: new Map([["1", "2"]]), sent: 1 };
  const rebuilt = { people: new Map([["@ann.b", { status: "sent", name: "y" }]]), ids: new Map(), sent: 2 };
  const found = await differences(stored, rebuilt);
  expect(found).toHaveLength(4);
  expect(listMembers(found)).toEqual(["people", "ids", "sent"]);
});
