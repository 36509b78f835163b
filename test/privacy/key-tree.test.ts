// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { keyAt, LEAF_DIGITS, punctured, type Tree } from "../../src/privacy/click-keys.ts";

const ROOT: Tree = new Map([["", new Uint8Array(32).fill(7)]]);

const leaf = fc.string({
  unit: fc.constantFrom(...Array.from("0123456789abcdef")),
  minLength: LEAF_DIGITS,
  maxLength: LEAF_DIGITS,
});

function hex(nodes: Tree, place: string): string | undefined {
  const key = keyAt(nodes, place);
  return key === undefined ? undefined : Buffer.from(key).toString("hex");
}

function without(nodes: Tree, gone: string): Tree {
  return punctured(nodes, gone) ?? nodes;
}

test("punctured leaves cannot be derived, and all others keep their keys", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(leaf, { minLength: 1, maxLength: 6 }),
      fc.array(leaf, { maxLength: 10 }),
      (gone, tried) => {
        let nodes = ROOT;
        for (const one of gone) nodes = without(nodes, one);
        for (const one of gone) expect(hex(nodes, one)).toBeUndefined();
        // The siblings of deleted leaves of the key tree share their parent node with these leaves. So they are the
        // leaves whose keys a faulty deletion would most likely lose.
        const neighbours = gone.map((one) => one.slice(0, -1) + (one.endsWith("0") ? "1" : "0"));
        for (const one of [...tried, ...neighbours]) {
          if (!gone.includes(one)) expect(hex(nodes, one)).toBe(hex(ROOT, one));
        }
        // No node that is left in the tree is a deleted leaf or lies above one, so no deleted key can be derived from
        // the tree.
        for (const place of nodes.keys()) expect(gone.some((one) => one.startsWith(place))).toBe(false);
      },
    ),
  );
});

test("puncturing a leaf twice does nothing", () => {
  const once = without(ROOT, "abcdef");
  expect(once.size).toBe(15 * LEAF_DIGITS);
  expect(punctured(once, "abcdef")).toBeUndefined();
});
