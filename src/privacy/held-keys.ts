import type { Awaitable } from "eventstore-lite";
import { createLeafKeys, fetchTree, partsOf } from "./click-keys.ts";
import { kindOf, type FoundKey, type StoredKeys } from "./key-store.ts";
import { keyAt, type Tree } from "./key-tree.ts";

/** The keys that ciphertexts are opened with: the store is asked for many at once, and some are held. */
export interface HeldKeys {
  /** The keys of these refs, each in its place; undefined: it is gone. No promise where all are held. */
  find(refs: readonly string[]): Awaitable<readonly (Uint8Array | undefined)[]>;
  /** Keys may have been deleted: nothing is held any more, nor is what was asked for before. */
  refresh(): void;
}

/** Keys of people and days held at once; a fold over more people asks again. */
const KEYS_MAX = 10_000;

/** Trees of clicks held at once: each process makes one a day, and a reader comes from day to day. */
const TREES_MAX = 32;

/** By ref, and by the root of a tree. */
interface Held {
  readonly keys: Map<string, FoundKey>;
  readonly trees: Map<string, Tree>;
}

export function createHeldKeys(keys: StoredKeys): HeldKeys {
  let held: Held = { keys: new Map(), trees: new Map() };
  const leafKey = createLeafKeys();
  const keyIn = ({ keys: known, trees }: Held, ref: string): Uint8Array | undefined => {
    const [root, leaf] = partsOf(ref);
    const tree = trees.get(root);
    if (tree !== undefined) return leafKey(tree, leaf);
    const key = known.get(ref);
    return key === "gone" ? undefined : key;
  };
  const isHeld = (ref: string): boolean =>
    kindOf(ref) === "click" ? held.trees.has(partsOf(ref)[0]) : held.keys.has(ref);
  const fetch = async (refs: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> => {
    for (;;) {
      const asOf = held;
      const fetched = await fetchAll(
        keys,
        [...new Set(refs)].filter((ref) => !isHeld(ref)),
      );
      // Keys were deleted meanwhile: what was fetched may be of before.
      if (asOf !== held) continue;
      const found = refs.map((ref) => keyIn(fetched, ref) ?? keyIn(held, ref));
      hold(held.keys, fetched.keys, KEYS_MAX);
      hold(held.trees, fetched.trees, TREES_MAX);
      return found;
    }
  };
  return {
    find: (refs) => (refs.every(isHeld) ? refs.map((ref) => keyIn(held, ref)) : fetch(refs)),
    refresh() {
      held = { keys: new Map(), trees: new Map() };
    },
  };
}

async function fetchAll(keys: StoredKeys, refs: readonly string[]): Promise<Held> {
  const { click = [], person = [], day = [] } = Object.groupBy(refs, kindOf);
  const roots = [...new Set(click.map((ref) => partsOf(ref)[0]))];
  const [found, trees] = await Promise.all([
    keys.getAll([...person, ...day]),
    Promise.all(roots.map(async (root) => [root, await fetchTree(keys, root)] as const)),
  ]);
  return { keys: new Map(found), trees: new Map(trees) };
}

function hold<Value>(held: Map<string, Value>, fetched: ReadonlyMap<string, Value>, max: number): void {
  if (held.size + fetched.size > max) held.clear();
  for (const [ref, value] of fetched) held.set(ref, value);
}

/** Of these refs those whose key opens something, or may encrypt something yet; as the store has them. */
export async function leftOf(keys: StoredKeys, refs: readonly string[]): Promise<readonly string[]> {
  const found = await fetchAll(keys, refs);
  return refs.filter((ref) => {
    const [root, leaf] = partsOf(ref);
    if (kindOf(ref) === "click") return keyAt(found.trees.get(root) ?? new Map(), leaf) !== undefined;
    return kindOf(ref) === "person" ? found.keys.get(ref) !== "gone" : found.keys.has(ref);
  });
}
