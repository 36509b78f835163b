// On no harness.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { cycles, FLOORS, roomOf, uphill } from "./floors.ts";
import { importsOf, sourceFiles } from "./imports.ts";

const root = join(import.meta.dirname, "../..");
const files = sourceFiles(root);
const imports = importsOf(root, files);

test("every import goes down", () => {
  expect(imports.length).toBeGreaterThan(1_000);
  expect(uphill(imports)).toEqual([]);
});

test("no files import each other round", () => {
  expect(cycles(imports)).toEqual([]);
});

test("every room is on one floor, and every floor's rooms are there", () => {
  const rooms = [...new Set(files.map(roomOf))].sort();
  expect(FLOORS.flat().toSorted()).toEqual(rooms);
});

test.each([
  ["up", { from: "src/platform/clock.ts", to: "src/config/config.ts" }],
  ["to a neighbour", { from: "src/privacy/retention.ts", to: "src/account/oauth.ts" }],
  ["from a room on no floor", { from: "src/helpers/text.ts", to: "src/platform/clock.ts" }],
  ["from the events to what they add up to", { from: "events/account.ts", to: "projections/stats.ts" }],
])("an import %s is found", (_which, one) => {
  expect(uphill([one])).toEqual([`${one.from} imports ${one.to}`]);
});

test("a circle is found, and what merely leads to it is not part of it", () => {
  const circle = [
    { from: "a.ts", to: "b.ts" },
    { from: "b.ts", to: "c.ts" },
    { from: "c.ts", to: "b.ts" },
    { from: "c.ts", to: "d.ts" },
  ];
  expect(cycles(circle)).toEqual([["b.ts", "c.ts"]]);
});
