import { createHmac, randomBytes } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { personalLinkOwner } from "../../events/clicks-links-conversions.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
import { newKey, type FoundKey, type KeyStore, type StoredKeys } from "./key-store.ts";

/**
 * Encryption keys of recipients: one for each known id. A handle may pass to another recipient, so data under a handle
 * without an id gets a new key in each append. An erasure then destroys one holder's keys and spares those of the
 * others.
 */
export type PersonKeys = ReturnType<typeof createPersonKeys>;

export interface PersonKey {
  readonly ref: string;
  /** The recipient's key; `gone` if the recipient was erased. */
  readonly key: FoundKey;
}

/** Number of hex digits of a key's ref (name): 128 bits of a keyed hash, so that no two recipients share a ref. */
const REF_DIGITS = 32;

/** Number of random bytes in a ref (a key's name) that distinguish the keys of one handle. */
const APPEND_BYTES = 4;

/** Suffix of the ref (name) of a key that encrypts data recorded under a handle alone, without an id. */
const ALONE = "-";

/**
 * Returns the name of a key that does not disclose its owner. `ref`: name of the entry in the key store that leads an
 * erasure from the owner to this key. Undefined if `ref` is not the name of such an entry.
 */
export function toUnlinkableRef(ref: string): string | undefined {
  const name = ref.slice(1 + REF_DIGITS);
  return name.length === REF_DIGITS ? `p${name}` : undefined;
}

/** Returns the beginning of a key's name. All keys of one id, or of one handle, have names with the same beginning. */
export function toBaseRef(ref: string): string {
  return ref.slice(0, 1 + REF_DIGITS);
}

/**
 * Makes and finds the keys of recipients. `pepper` must be secret; otherwise the refs (names) of keys could be computed
 * for any recipient.
 */
export function createPersonKeys(keys: KeyStore, pepper: Uint8Array) {
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;
  const ofId = (id: string): string => ref("id", id);
  const ofHandle = (username: string): string => ref("handle", username.toLowerCase());
  /**
   * Returns the names of the recipient's keys, first the one for new data. If one is erased, so is the recipient.
   * Erasing the name of a handle erases all its holders; the name with suffix `ALONE` covers only data recorded without
   * an id.
   */
  const listNames = ({ id, username }: Named): readonly string[] => {
    const handle = username === undefined ? [] : [ofHandle(username)];
    return id === undefined ? [...handle, ...handle.map((one) => one + ALONE)] : [ofId(id), ...handle];
  };

  return {
    /** Returns a key for the data of each recipient in one append. Makes missing keys, except for erased recipients. */
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
     * Makes a separate key, whose ref says nothing of its owner; `gone` if the owner was erased. Only an entry of the
     * key store leads from the owner to this key, and an erasure deletes the entry.
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
     * Returns the refs of the keys that an erasure destroys. If the id is given, the handle's keys are included only
     * for data that was recorded without an id, because other data under the handle may belong to its other holders.
     */
    refsOf({ id, username }: Recipient): readonly string[] {
      const handle = username === undefined ? [] : [ofHandle(username)];
      return id === undefined ? handle : [ofId(id), ...handle.map((one) => one + ALONE)];
    },
  };
}

/**
 * Returns the given refs (names of keys), and those of all keys of the handles among them, except for `spared`, which
 * belong to other recipients.
 */
export async function withHandles(keys: StoredKeys, refs: readonly string[], spared: ReadonlySet<string>) {
  const bases = refs.filter((ref) => ref === toBaseRef(ref) || ref.endsWith(ALONE)).map(toBaseRef);
  const found = (await Promise.all(bases.map((base) => keys.refs(base)))).flat();
  return [...new Set([...refs, ...found.filter((one) => one !== toBaseRef(one) && !spared.has(one))])];
}

/**
 * Makes keys durably, except for recipients erased meanwhile, and returns the keys that exist then. Writing a page of
 * the key file for each takes time and waits for the disk, so other work gets a turn before and after.
 */
async function makeKeys(keys: KeyStore, missing: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> {
  await nextTurn();
  const all = await keys.change(async (within) => {
    // The keys are read again within the change, because another process may have made or erased some of them by now.
    const names = missing.flatMap((one) => [one, toBaseRef(one), toBaseRef(one) + ALONE]);
    const found = await within.getAll([...new Set(names)]);
    const isErased = (one: string): boolean =>
      found.get(toBaseRef(one)) === "gone" || found.get(toBaseRef(one) + ALONE) === "gone";
    // Makes the keys in the order of their refs in the store, so that each page of the key file is written once.
    const unmade = missing.filter((one) => !found.has(one) && !isErased(one)).toSorted();
    const made = unmade.map((one) => [one, newKey()] as const);
    await within.putAll(made);
    return new Map([...found, ...made]);
  });
  await nextTurn();
  return all;
}

export type Named = { readonly [Name in keyof Recipient]: Recipient[Name] | undefined };

/**
 * Finds the keys whose deletion erases the clicks on personal links with these codes. Skips codes whose owner was
 * erased.
 */
export type FindLinkKeys = (codes: readonly string[]) => readonly string[];

export function createFindLinkKeys({ refsOf, isForgotten }: LinkOwners): FindLinkKeys {
  return (codes) => {
    const owners = codes.map((code) => ({ id: personalLinkOwner(code).id }));
    return owners.filter((owner) => !isForgotten(owner)).flatMap(refsOf);
  };
}

/**
 * Functions of the keyring. They give the refs of the keys that encrypt an owner's data, and tell if the owner was
 * erased.
 */
interface LinkOwners {
  readonly refsOf: (who: Recipient) => readonly string[];
  readonly isForgotten: (who: Recipient) => boolean;
}
