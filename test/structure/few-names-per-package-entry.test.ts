// These tests call the code directly.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/temporary-folder.ts";
import { readFaces, findFaults, exportedNames, NAMES_MAX } from "./few-names-per-package-entry.ts";

const ROOT = join(import.meta.dirname, "../..");
const { workspaces } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly workspaces: readonly string[];
};

test(`each entry of each package is one file of at most ${NAMES_MAX} names`, () => {
  const faces = readFaces(ROOT, workspaces);
  expect(faces.map(({ entry }) => entry)).toEqual(
    expect.arrayContaining([
      "eventstore-lite",
      "eventstore-lite/postgres",
      "eventstore-lite/segments",
      "eventstore-lite/proof",
      "eventstore-lite/testing",
    ]),
  );
  expect(findFaults(ROOT, faces)).toEqual([]);
});

test("an entry for a whole folder, or with one name too many, is reported", () => {
  using folder = temporaryFolder();
  mkdirSync(folder.file("small"));
  const exports = { ".": "./index.ts", "./tools/*": "./tools/*.ts", "./data.csv": "./data.csv" };
  writeFileSync(folder.file("small/package.json"), JSON.stringify({ name: "small", exports }));
  writeFileSync(folder.file("small/data.csv"), "");
  writeFileSync(folder.file("small/others.ts"), "export const a = 1;\nexport default class {}\n");
  const types = Array.from({ length: NAMES_MAX - 4 }, (_, at) => `export type T${at} = ${at};\n`).join("");
  const rest = 'export * from "./others.ts";\nexport * as others from "./others.ts";\n';
  const write = (listed: string): void => writeFileSync(folder.file("small/index.ts"), types + rest + listed);
  write('export { a as c } from "./others.ts";\n');
  expect(exportedNames(folder.file("small/index.ts"))).toHaveLength(NAMES_MAX);
  const faces = readFaces(folder.path, ["small"]);
  expect(findFaults(folder.path, faces)).toEqual(["small/tools/* is not one file: small/tools/*.ts"]);
  write('export { a as c, type Other } from "./others.ts";\n');
  expect(findFaults(folder.path, faces)).toEqual([
    `small exports ${NAMES_MAX + 1} names`,
    "small/tools/* is not one file: small/tools/*.ts",
  ]);
});
