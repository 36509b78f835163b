// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MUTATIONS, type Mutation } from "./model/mutation-list.ts";

const root = join(import.meta.dirname, "../..");

/**
 * Returns the mutations with an edit whose text does not occur exactly once in its file. Such an edit would break
 * nothing, or the wrong place.
 */
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

test("the text of each mutation occurs exactly once in the sources", () => {
  expect(MUTATIONS.length).toBeGreaterThan(40);
  expect(misplaced(MUTATIONS)).toEqual([]);
});

test("a mutation of a missing text is reported", () => {
  const edits = [{ file: "src/main.ts", from: "no such text", to: "" }];
  expect(misplaced([{ name: "gone", edits }])).toEqual(["gone: src/main.ts"]);
});
