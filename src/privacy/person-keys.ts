import { createHmac, randomBytes } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { nextTurn } from "../platform/time-slices.ts";
import { newKey, type FoundKey, type KeyStore, type StoredKeys } from "./key-store.ts";

/**
 * The keys of recipients. A recipient known by id has one. A handle changes hands, so records of a handle alone get a
 * separate key in each append: forgetting its holder then erases nothing of another one.
 */
export type PersonKeys = ReturnType<typeof createPersonKeys>;

export interface PersonKey {
  readonly ref: string;
  /** `gone`: the recipient was erased. */
  readonly key: FoundKey;
}

/** 128 bits of a keyed hash: no two recipients share a ref. */
const REF_DIGITS = 32;

/** Random bytes that distinguish the keys of one handle. */
const APPEND_BYTES = 4;

/** Added to the ref of a handle if the handle stands alone. */
const ALONE = "-";

/**
 * The ref of an unlinkable key, from the entry by which its owner's erasure finds it; undefined if `ref` is no such
 * entry.
 */
export function toUnlinkableRef(ref: string): string | undefined {
  const name = ref.slice(1 + REF_DIGITS);
  return name.length === REF_DIGITS ? `p${name}` : undefined;
}

/** The ref of an id or a handle, the same for all of its keys. */
export function toBaseRef(ref: string): string {
  return ref.slice(0, 1 + REF_DIGITS);
}

/** `pepper` is secret; otherwise refs could be computed for any name. */
export function createPersonKeys(keys: KeyStore, pepper: Uint8Array) {
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;
  const ofId = (id: string): string => ref("id", id);
  const ofHandle = (username: string): string => ref("handle", username.toLowerCase());
  /**
   * The refs by which a recipient's erasure is found: that of the id first, then those of a handle that stood alone.
   */
  const listNames = ({ id, username }: Named): readonly string[] => {
    const handle = username === undefined ? [] : [ofHandle(username)];
    return id === undefined ? [...handle, ...handle.map((one) => one + ALONE)] : [ofId(id), ...handle];
  };

  return {
    /** For one append: returns a key for the records of each recipient. Makes missing keys, except for the erased. */
    async keysFor(people: readonly Named[]): Promise<readonly PersonKey[]> {
      const named = people.map(listNames);
      const found = new Map(await keys.getAll(named.flat()));
      const nonces = new Map<string, string>();
      const refInAppend = (handle: string): string => {
        const nonce = nonces.get(handle) ?? randomBytes(APPEND_BYTES).toString("hex");
        nonces.set(handle, nonce);
        return handle + nonce;
      };
      const chooseRef = ({ id }: Named, at: number): string => {
        const known = named[at] ?? [];
        const [own = ofHandle("")] = known;
        return known.find((one) => found.get(one) === "gone") ?? (id === undefined ? refInAppend(own) : own);
      };
      const missing = [...new Set(people.map(chooseRef))].filter((one) => !found.has(one));
      if (missing.length > 0) for (const [ref, key] of await makeKeys(keys, missing)) found.set(ref, key);
      return people.map((who, at) => {
        const ref = chooseRef(who, at);
        return { ref, key: found.get(ref) ?? "gone" };
      });
    },
    /**
     * A separate key, whose ref says nothing of its owner; `gone` if the owner was erased. Only an entry of the key
     * store leads from the owner to it, and an erasure deletes that.
     */
    unlinkableKey(id: string): Promise<PersonKey> {
      const owner = ofId(id);
      const name = randomBytes(REF_DIGITS / 2).toString("hex");
      const made = { ref: `p${name}`, key: newKey() };
      return keys.change(async (within) => {
        if ((await within.getAll([owner])).get(owner) === "gone") return { ref: made.ref, key: "gone" };
        await within.putAll([
          [made.ref, made.key],
          [owner + name, newKey()],
        ]);
        return made;
      });
    },
    namesOf: listNames,
    /**
     * Refs to destroy for an erasure. With an id, the handle counts only where it was recorded alone: next to another
     * id it is another recipient's. Without an id it counts everywhere.
     */
    refsOf({ id, username }: Recipient): readonly string[] {
      const handle = username === undefined ? [] : [ofHandle(username)];
      return id === undefined ? handle : [ofId(id), ...handle.map((one) => one + ALONE)];
    },
  };
}

/** The given refs, and all keys of the handles among them, except for `spared`, which belong to other recipients. */
export async function withHandles(keys: StoredKeys, refs: readonly string[], spared: ReadonlySet<string>) {
  const bases = refs.filter((ref) => ref === toBaseRef(ref) || ref.endsWith(ALONE)).map(toBaseRef);
  const found = (await Promise.all(bases.map((base) => keys.refs(base)))).flat();
  return [...new Set([...refs, ...found.filter((one) => one !== toBaseRef(one) && !spared.has(one))])];
}

/**
 * Makes keys durably, except for people erased meanwhile, and returns the keys that exist then. Writing a page of the
 * keys' file for each takes time and waits for the disk, so others have a turn before and after.
 */
async function makeKeys(keys: KeyStore, missing: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> {
  await nextTurn();
  const all = await keys.change(async (within) => {
    // Another process may have made or erased some of them by now.
    const names = missing.flatMap((one) => [one, toBaseRef(one), toBaseRef(one) + ALONE]);
    const found = await within.getAll([...new Set(names)]);
    const isErased = (one: string): boolean =>
      found.get(toBaseRef(one)) === "gone" || found.get(toBaseRef(one) + ALONE) === "gone";
    // In their order in the store, so that each of its pages is written once.
    const unmade = missing.filter((one) => !found.has(one) && !isErased(one)).toSorted();
    const made = unmade.map((one) => [one, newKey()] as const);
    await within.putAll(made);
    return new Map([...found, ...made]);
  });
  await nextTurn();
  return all;
}

export type Named = { readonly [Name in keyof Recipient]: Recipient[Name] | undefined };
