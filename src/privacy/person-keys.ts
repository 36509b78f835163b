import { createHmac, randomBytes } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { nextTurn } from "../platform/time-slices.ts";
import { newKey, type FoundKey, type KeyStore, type StoredKeys } from "./key-store.ts";

/**
 * The keys of people. Who is known by id has one. A handle is no person, since it changes hands: what is recorded of
 * a handle alone gets a key of its own in each append, so that forgetting its holder reaches nothing of another one.
 */
export type PersonKeys = ReturnType<typeof createPersonKeys>;

export interface PersonKey {
  readonly ref: string;
  /** `gone`: the person was erased. */
  readonly key: FoundKey;
}

/** 128 bits of a keyed hash: no two people share one. */
const REF_DIGITS = 32;

/** Tells the keys of one handle apart. */
const APPEND_BYTES = 4;

/** Behind the ref of a handle: only where the handle stands alone. */
const ALONE = "-";

/** The ref of an unlinkable key, of the entry by which its owner's erasure finds it; undefined: `ref` is no such entry. */
export function toUnlinkableRef(ref: string): string | undefined {
  const name = ref.slice(1 + REF_DIGITS);
  return name.length === REF_DIGITS ? `p${name}` : undefined;
}

/** The ref of an id or a handle, of whatever key of it. */
export function toBaseRef(ref: string): string {
  return ref.slice(0, 1 + REF_DIGITS);
}

/** `pepper` is a secret, or refs could be computed of any name. */
export function createPersonKeys(keys: KeyStore, pepper: Uint8Array) {
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;
  const ofId = (id: string): string => ref("id", id);
  const ofHandle = (username: string): string => ref("handle", username.toLowerCase());
  /** The refs by which a person's erasure is found: that of the id first, then those of a handle that stood alone. */
  const listNames = ({ id, username }: Named): readonly string[] => {
    const handle = username === undefined ? [] : [ofHandle(username)];
    return id === undefined ? [...handle, ...handle.map((one) => one + ALONE)] : [ofId(id), ...handle];
  };

  return {
    /** For one append: a key for what is recorded of each of them. Keys that are missing are made, none for the erased. */
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
     * A key of its own, whose ref says nothing of its owner; `gone` where the owner was erased. Only an entry of the key
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
     * Refs to destroy for an erasure. With an id, the handle counts only where it was recorded alone: next to another id it
     * is another person's. Without an id it counts wherever it was recorded.
     */
    refsOf({ id, username }: Recipient): readonly string[] {
      const handle = username === undefined ? [] : [ofHandle(username)];
      return id === undefined ? handle : [ofId(id), ...handle.map((one) => one + ALONE)];
    },
  };
}

/** Of `refs`, and of the handles among them, all that there is a key of; but not `spared`, which is other people's. */
export async function withHandles(keys: StoredKeys, refs: readonly string[], spared: ReadonlySet<string>) {
  const bases = refs.filter((ref) => ref === toBaseRef(ref) || ref.endsWith(ALONE)).map(toBaseRef);
  const found = (await Promise.all(bases.map((base) => keys.refs(base)))).flat();
  return [...new Set([...refs, ...found.filter((one) => one !== toBaseRef(one) && !spared.has(one))])];
}

/**
 * Makes keys durably, but none for who was erased meanwhile. Answers what is there then. To write a page of the keys' file
 * for each is work of its own, and waits for the disk: others have a turn before and after.
 */
async function makeKeys(keys: KeyStore, missing: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> {
  await nextTurn();
  const all = await keys.change(async (within) => {
    // Another process may have made or erased some of them by now.
    const names = missing.flatMap((one) => [one, toBaseRef(one), toBaseRef(one) + ALONE]);
    const found = await within.getAll([...new Set(names)]);
    const isErased = (one: string): boolean =>
      found.get(toBaseRef(one)) === "gone" || found.get(toBaseRef(one) + ALONE) === "gone";
    // In their order in the store, whose pages are written once each then.
    const unmade = missing.filter((one) => !found.has(one) && !isErased(one)).toSorted();
    const made = unmade.map((one) => [one, newKey()] as const);
    await within.putAll(made);
    return new Map([...found, ...made]);
  });
  await nextTurn();
  return all;
}

export type Named = { readonly [Name in keyof Recipient]: Recipient[Name] | undefined };
