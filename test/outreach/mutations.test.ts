// On no harness.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MUTATIONS, type Mutation } from "./model/mutation-list.ts";

const root = join(import.meta.dirname, "../..");

/** Edits whose text occurs never or more than once in its file: they would break nothing, or something else. */
function misplaced(mutations: readonly Mutation[]): readonly string[] {
  return mutations.flatMap(({ name, edits }) => {
    const texts = new Map<string, string>();
    return edits.flatMap(({ file, from, to }) => {
      const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
      texts.set(file, text.replace(from, to));
      return text.split(from).length === 2 ? [] : [`${name}: ${file}`];
    });
  });
}

test("each rule that the mutations break stands in the sources as they have it, once", () => {
  expect(MUTATIONS.length).toBeGreaterThan(40);
  expect(misplaced(MUTATIONS)).toEqual([]);
});

test("a text that is not there is found out", () => {
  const edits = [{ file: "src/main.ts", from: "no such text", to: "" }];
  expect(misplaced([{ name: "gone", edits }])).toEqual(["gone: src/main.ts"]);
});
