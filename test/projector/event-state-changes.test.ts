// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { PERSONAL_PROJECTIONS, PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { fold } from "../../projections/projection.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { findDifferences } from "../../src/projector/compare-states.ts";
import { findChange, listFolding } from "../../src/projector/event-state-changes.ts";
import { testLog } from "../harness/in-process/number-and-fold-events.ts";
import { histories } from "../projections/generate-history.ts";
import { countCases } from "../harness/case-count.ts";

test("an event's change is the difference of two folds, and the earlier state stays unmodified", async () => {
  await fc.assert(
    fc.asyncProperty(histories(60), fc.constantFrom(...PROJECTION_NAMES), fc.nat(), async ({ events }, name, at) => {
      const event = events[at % Math.max(1, events.length)];
      if (event === undefined) return;
      const { initial } = projectionOf(name);
      const earlier = events.filter(({ position }) => position < event.position);
      const before = fold(projectionOf(name), initial(), earlier);
      const text = encodeState(before);
      const found = await findChange(name, before as never, event);
      expect(encodeState(before)).toBe(text);
      const after = fold(projectionOf(name), initial(), [...earlier, event]);
      const differences = (await findDifferences(before, after)).filter(({ path, values }) => {
        if (name !== "contacts") return true;
        // Ignores members that serve only to restore contacts as of an earlier position, and that no page shows.
        // Ignores changes of order too, except in the Map `people`.
        if (path.includes("replaced") || path[0] === "changed" || path[0] === "rewinds_to") return false;
        return path[2] !== "met" && (values !== "reordered" || path.join() === "people");
      });
      const shown = JSON.stringify(found.differences);
      expect(name === "contacts" && /"(?:replaced|met)":/.test(shown)).toBe(false);
      const isEntry = (path: readonly string[]): boolean =>
        name === "contacts" && path[0] === "people" && path.length === 2;
      expect(found.differences.filter(({ path }) => !isEntry(path))).toEqual(
        differences.filter(({ path }) => !isEntry(path)),
      );
      expect(found.differences.map(({ path }) => path)).toEqual(differences.map(({ path }) => path));
      if (found.differences.length > 0) expect(listFolding(event.type)).toContain(name);
    }),
    { numRuns: countCases(1_000) },
  );
});

test("a change includes both whole states if they are short and not personal", async () => {
  const log = testLog();
  log.add("TokenUsed", { name: "ops", token_id: "b".repeat(12), day: "2026-11-20" });
  const [event] = log.events;
  const usedOn = new Map([["b".repeat(12), "2026-11-19"]]);
  expect(await findChange("tokens", { usedOn }, event!)).toEqual({
    projection: "tokens",
    differences: [{ path: ["usedOn", "b".repeat(12)], values: { before: "2026-11-19", after: "2026-11-20" } }],
    whole: {
      before: { usedOn: new Map([["b".repeat(12), "2026-11-19"]]) },
      after: { usedOn: new Map([["b".repeat(12), "2026-11-20"]]) },
    },
  });
  const many = new Map(Array.from({ length: 1_000 }, (_, id) => [`${id}`, "2026-11-19"]));
  expect(await findChange("tokens", { usedOn: many }, event!)).toMatchObject({ whole: undefined });
  for (const name of PERSONAL_PROJECTIONS)
    expect(await findChange(name, projectionOf(name).initial() as never, event!)).toMatchObject({ whole: undefined });
});
