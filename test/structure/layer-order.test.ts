// These tests call the code directly.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { cycles, FLOORS, roomOf, uphill } from "./layer-order.ts";
import { importsOf, sourceFiles } from "./imports.ts";

const root = join(import.meta.dirname, "../..");
const files = sourceFiles(root);
const imports = importsOf(root, files);

test("every import goes to a lower floor", () => {
  expect(imports.length).toBeGreaterThan(1_000);
  expect(uphill(imports)).toEqual([]);
});

/**
 * Upper limits for the console's imports: the number of imported modules, and of rooms (folders, see FLOORS) that they
 * are in. The limits are not small, because the console's pages show data that many rooms read.
 */
const CONSOLE_IMPORTS = { modules: 20, rooms: 8 };

test("the console imports at most 20 modules of at most 8 other rooms", () => {
  const others = imports.filter(({ from, to }) => roomOf(from) === "console" && roomOf(to) !== "console");
  const modules = [...new Set(others.map(({ to }) => to))].sort();
  expect(modules.length).toBeGreaterThan(5);
  expect(modules.slice(CONSOLE_IMPORTS.modules)).toEqual([]);
  expect([...new Set(modules.map(roomOf))].sort().slice(CONSOLE_IMPORTS.rooms)).toEqual([]);
});

test("imports form no cycle", () => {
  expect(cycles(imports)).toEqual([]);
});

test("every folder is on exactly one floor, and every folder of a floor exists", () => {
  const rooms = [...new Set(files.map(roomOf))].sort();
  expect(FLOORS.flat().toSorted()).toEqual(rooms);
});

test.each([
  ["up", { from: "src/platform/clock-ids-and-timers.ts", to: "src/config/config.ts" }],
  ["to a neighbour", { from: "src/privacy/delete-erased-and-expired-keys.ts", to: "src/account/oauth.ts" }],
  ["from a folder on no floor", { from: "src/helpers/text.ts", to: "src/platform/clock-ids-and-timers.ts" }],
  ["from the events to the projections", { from: "events/account.ts", to: "projections/message-totals.ts" }],
])("an import %s is reported", (_which, one) => {
  expect(uphill([one])).toEqual([`${one.from} imports ${one.to}`]);
});

test("a cycle is reported without the files that only lead to it", () => {
  const circle = [
    { from: "a.ts", to: "b.ts" },
    { from: "b.ts", to: "c.ts" },
    { from: "c.ts", to: "b.ts" },
    { from: "c.ts", to: "d.ts" },
  ];
  expect(cycles(circle)).toEqual([["b.ts", "c.ts"]]);
});
