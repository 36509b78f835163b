import { andThen, type Awaitable } from "eventstore-lite";
import { type Encryptor, markOfErased, type EncryptionKey, type Owner } from "../../events/declare-personal-members.ts";
import type { Recipient } from "../../events/outreach.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
import { puncture, createClickKeys } from "./click-keys.ts";
import { createKeyCache, findUsable } from "./key-cache.ts";
import {
  formatCheck,
  hashDigits,
  type KeyChanges,
  type KeyStore,
  classifyRef,
  newKey,
  type StoredKeys,
  encryptText,
  openText,
  type NamedKey,
} from "./key-store.ts";
import { createPersonKeys, toUnlinkableRef, withHandles, type PersonKey, type PersonKeys } from "./person-keys.ts";
import { createDayKeys } from "./daily-encryption-keys.ts";

export type Keyring = Awaited<ReturnType<typeof openKeyring>>;

/** Ref (name in the key store) of the secret from which the refs of recipients' keys are computed. */
const PEPPER = "pepper";
/** Ref of the key that encrypts snapshots. */
const STATES = "states";

/**
 * Beginning of the refs (names in the key store) that keep the hashes of recipients who opted out. No key has such a
 * ref.
 */
const OPTED_OUT = "o";

/** Number of digits of a key store's id, enough to distinguish the few key stores that one log ever has. */
const ID_DIGITS = 8;

/**
 * Number of digits of a key's ref (name) that an erased recipient keeps as a mark. The digits distinguish one erased
 * recipient from another.
 */
const MARK_DIGITS = 12;

async function makeFixed(keys: KeyStore): Promise<void> {
  const refs = [PEPPER, STATES];
  if ((await keys.getAll(refs)).size === refs.length) return;
  await keys.change((within) => within.putAll(refs.map((ref) => [ref, newKey()])));
}

/** Opens the keys of personal data, or creates them. Throws what the store throws. */
export async function openKeyring(keys: KeyStore, clock: Clock) {
  await makeFixed(keys);
  const pepper = await fixed(keys, PEPPER);
  const id = hashDigits("id", pepper, ID_DIGITS);
  const erased = new Set(await keys.gone("p"));
  const people = createPersonKeys(keys, pepper);
  const choice = createKeyChoice({ keys, people, id, clock });
  const cache = createKeyCache(keys);
  const refresh = (): void => {
    choice.refresh();
    cache.clear();
  };
  const freshness = await trackFreshness(keys, refresh);

  const whenFresh = <Result>(work: () => Awaitable<Result>): Awaitable<Result> => {
    const renewed = freshness.revalidate();
    return renewed === undefined ? work() : renewed.then(work);
  };

  const encryptor: Encryptor = {
    revalidate: freshness.invalidate,
    keysFor: (owners) => whenFresh(() => choice.keysFor(owners)),
    open(ciphertexts) {
      const parts = ciphertexts.flatMap(({ ciphertext, context }, at) => {
        const [madeWith, name = "", encrypted = ""] = ciphertext.split(":");
        const [ref = "", check] = name.split(".");
        return madeWith === id && encrypted !== "" ? [{ at, ref, check, encrypted, context }] : [];
      });
      const texts = ciphertexts.map((): string | undefined => undefined);
      if (parts.length === 0) return texts;
      const refs = parts.map(({ ref }) => ref);
      const finding = whenFresh(() => cache.find(refs));
      return andThen(finding, (found) => {
        for (const [index, { at, ref, check, encrypted, context }] of parts.entries()) {
          const key = found[index];
          if (key === undefined || (check !== undefined && check !== formatCheck(key))) continue;
          texts[at] = openText(key, encrypted, context, ref);
        }
        return texts;
      });
    },
    markOf: (ciphertext) => (ciphertext.split(":")[1] ?? "").slice(1, 1 + MARK_DIGITS),
  };

  return {
    ...encryptor,
    keys,
    /** Id of this key store in each ciphertext: the keys of another log, or newly made ones, have another id. */
    id,
    /** Drops all cached keys. The code that has deleted keys in this process calls this. */
    refresh,
    /** Returns the ref (name) of the key that made a ciphertext. */
    refOf: (ciphertext: string): string => ciphertext.split(/[:.]/, 2)[1] ?? "",
    refsOf: people.refsOf,
    /**
     * True if the recipient was erased, even if a restored log no longer says so. Does not know erasures that other
     * processes made since the start; the log has those. Hashes no name while no recipient was erased.
     */
    isForgotten: (who: Recipient): boolean => erased.size > 0 && people.namesOf(who).some((ref) => erased.has(ref)),
    /**
     * Stores for ever the hash of a recipient who opted out, so that a restore of an older log does not lose the
     * opt-out.
     */
    async keepOptOut(hash: string): Promise<void> {
      if ((await keys.gone(OPTED_OUT + hash)).length === 0)
        await keys.change((within) => within.bury(OPTED_OUT + hash));
    },
    /** Returns the hashes of all recipients who opted out, even if the log no longer says so. */
    keptOptOuts: async () => (await keys.gone(OPTED_OUT)).map((ref) => ref.slice(OPTED_OUT.length)),
    /** Returns those of the refs (names of keys) whose key still opens some data, or may encrypt more. */
    findUsable: (refs: readonly string[]) => findUsable(keys, refs),
    /**
     * Deletes the keys of these refs (names of keys), so that nothing encrypted with them opens again; for the ref of a
     * handle, all keys that the handle ever had except `spared`. Returns how many keys existed.
     */
    async destroy(refs: readonly string[], spared: readonly string[] = []): Promise<number> {
      for (const ref of refs) if (classifyRef(ref) === "person") erased.add(ref);
      const destroyed = await keys.change((within) => destroyIn(within, refs, new Set(spared)));
      // Drops the cached keys immediately, before other work has its turn, so that nothing is encrypted with deleted
      // keys.
      refresh();
      await nextTurn();
      return destroyed;
    },
    ...createStateKey(keys),
  };
}

/**
 * Deletes the keys of these refs (names of keys) within one change of the key store; for the ref of a handle, all keys
 * that the handle ever had except `spared`. Returns how many keys existed.
 */
async function destroyIn(keys: KeyChanges, refs: readonly string[], spared: ReadonlySet<string>): Promise<number> {
  const { click = [], person = [], day = [] } = Object.groupBy(await findUsable(keys, refs), classifyRef);
  // Refs (names of keys) that have no key are buried too, so that nothing is ever encrypted for an erased recipient.
  const buried = await withHandles(keys, person, spared);
  const found = [...(await keys.getAll(buried)).values()].filter((key) => key !== "gone");
  // A day's key is removed without barring its name, because the next key gets another name. A ref may be only an entry
  // that leads to a key with an anonymous name: then the entry is removed, and the anonymous key is deleted for ever.
  const bury = async (ref: string): Promise<void> => {
    const unlinkable = toUnlinkableRef(ref);
    if (unlinkable !== undefined) await keys.remove(ref);
    await keys.bury(unlinkable ?? ref);
  };
  await Promise.all([...buried.map(bury), ...day.map((ref) => keys.remove(ref))]);
  return found.length + day.length + (await puncture(keys, click));
}

/**
 * Functions of the key that encrypts snapshots. They read the key each time, because another process may have replaced
 * it.
 */
function createStateKey(keys: KeyStore) {
  return {
    encryptState: async (name: string, state: string) => encryptText(await fixed(keys, STATES), state, name),
    /** Decrypts a snapshot; undefined if its key was replaced since. */
    async openState(name: string, encrypted: string): Promise<string | undefined> {
      const key = await fixed(keys, STATES);
      try {
        return openText(key, encrypted, name, STATES);
      } catch {
        return undefined;
      }
    },
    /** Replaces the key of snapshots: all those encrypted so far become unreadable. */
    replaceStateKey: (): Promise<void> =>
      keys.change(async (within) => {
        await within.remove(STATES);
        await within.put(STATES, newKey());
      }),
  };
}

async function fixed(keys: StoredKeys, ref: string): Promise<Uint8Array> {
  const key = (await keys.getAll([ref])).get(ref);
  if (key === undefined || key === "gone") throw new Error(`the keys of personal data lack ${ref}`);
  return key;
}

/** How long cached keys count as fresh. Asking the store at each use would cost more than encrypting. */
export const FRESH_MS = 50;

/**
 * Keeps cached keys fresh: asks the store if another process has changed keys, and then calls `refresh`. A frequent
 * caller never waits, because the store is asked again before its last answer is too old.
 */
export async function trackFreshness(keys: { readonly revision: KeyStore["revision"] }, refresh: () => void) {
  let seen = await keys.revision();
  /** Two counters: questions to the key store, and calls that made its answers invalid. */
  let [questions, invalidations] = [0, 0];
  /**
   * The last query to the key store that was answered: its number, the time at which it was made (`performance.now()`),
   * and the number of calls of `invalidate` before it.
   */
  let answered = { number: 0, at: -Infinity, invalidations: 0 };
  let asking: Promise<void> | undefined;
  const freshUntil = (): number => (answered.invalidations === invalidations ? answered.at + FRESH_MS : -Infinity);
  const ask = async (): Promise<void> => {
    const question = { number: ++questions, at: performance.now(), invalidations };
    const revision = await keys.revision();
    if (revision !== seen) refresh();
    seen = revision;
    answered = question;
  };
  const askOnce = (): Promise<void> => (asking ??= ask().finally(() => (asking = undefined)));
  /**
   * Asks the key store if keys have changed. If a query was already in progress, its answer may miss later changes, so
   * the key store is then asked once more.
   */
  const askSince = async (since: number, before: number): Promise<void> => {
    await askOnce();
    if (answered.number <= before && freshUntil() <= since) await askSince(since, before);
  };
  return {
    /**
     * Returns undefined if the cached keys are as the store was at most {@link FRESH_MS} ago. Otherwise resolves once
     * they are fresh, or rejects with what the store throws.
     */
    revalidate(): Promise<void> | undefined {
      const now = performance.now();
      const left = freshUntil() - now;
      if (left <= 0) return askSince(now, questions);
      // Asks the store early, without waiting. If this fails, a caller that needs the answer asks again, and gets the
      // fault.
      if (left < FRESH_MS / 2) askOnce().catch(() => {});
      return undefined;
    },
    /**
     * Makes the cached keys count as outdated until the key store was asked once more. The log's codec calls this when
     * another process may have deleted keys.
     */
    invalidate(): void {
      invalidations++;
    },
  };
}

interface KeyChoiceDeps {
  readonly keys: KeyStore;
  readonly people: PersonKeys;
  /** Id of the key store, as ciphertexts name it. */
  readonly id: string;
  readonly clock: Clock;
}

type Person = Extract<Owner, { kind: "person" }>;

/** Chooses the keys that encrypt the events of an append. */
export function createKeyChoice({ keys, people, id, clock }: KeyChoiceDeps) {
  const clicks = createClickKeys(keys);
  const days = createDayKeys(keys);
  const encryptionKey = (name: string, key: Uint8Array | undefined): EncryptionKey => ({
    prefix: `${id}:${name}:`,
    key: key?.toHex(),
  });

  /**
   * Encryption keys made from the cached keys of the key store. An entry lives as long as the cached key that it was
   * made from, so all clicks of an IP address share one object.
   */
  const made = new WeakMap<NamedKey, EncryptionKey>();
  const asEncryptionKey = (found: NamedKey): EncryptionKey => {
    const known = made.get(found);
    if (known !== undefined) return known;
    const key = encryptionKey(found.ref, found.key);
    made.set(found, key);
    return key;
  };

  /** Returns the cached key of the data's owner; undefined if the key has to be fetched or made. */
  const cachedKey = (owner: Owner): NamedKey | undefined => {
    if (owner.kind === "person") return undefined;
    return owner.kind === "click" ? clicks.of(owner.ip, clock()) : days.of(owner.kind, clock());
  };
  const cachedKeys = (owners: readonly Owner[]): readonly EncryptionKey[] | undefined => {
    const chosen: EncryptionKey[] = [];
    for (const owner of owners) {
      const found = cachedKey(owner);
      if (found === undefined) return undefined;
      chosen.push(asEncryptionKey(found));
    }
    return chosen;
  };
  const keyOfDay = async (owner: Exclude<Owner, Person>): Promise<EncryptionKey> => {
    for (;;) {
      const found = cachedKey(owner);
      if (found !== undefined) return asEncryptionKey(found);
      await (owner.kind === "click" ? clicks.prepare(clock()) : days.prepare(owner.kind, clock()));
    }
  };
  /**
   * Returns the encryption key for a recipient's data. `found` is undefined for a recipient who was erased before,
   * because only a mark is left of them.
   */
  const keyOfPerson = (owner: Person, found: PersonKey | undefined): EncryptionKey => {
    if (found === undefined) return encryptionKey(`p${findMark(owner)}`, undefined);
    const { ref, key } = found;
    return key === "gone" ? encryptionKey(ref, undefined) : encryptionKey(`${ref}.${formatCheck(key)}`, key);
  };
  const fetchKeys = async (owners: readonly Owner[]): Promise<readonly EncryptionKey[]> => {
    const named = owners.filter((owner) => owner.kind === "person").filter((owner) => findMark(owner) === undefined);
    const [unlinkable, linkable] = [true, undefined].map((is) => named.filter((one) => one.isUnlinkable === is));
    const keysOfPeople = await people.keysFor(linkable!);
    const byOwner = new Map<Owner, PersonKey>(linkable!.map((owner, at) => [owner, keysOfPeople[at]!]));
    for (const owner of unlinkable!) byOwner.set(owner, await people.unlinkableKey(owner.id!));
    const chosen: EncryptionKey[] = [];
    for (const owner of owners) {
      chosen.push(owner.kind === "person" ? keyOfPerson(owner, byOwner.get(owner)) : await keyOfDay(owner));
    }
    return chosen;
  };

  return {
    /**
     * Returns the keys that encrypt the data of these owners, all of one append. Missing keys are made durable first.
     */
    keysFor: (owners: readonly Owner[]): Awaitable<readonly EncryptionKey[]> => cachedKeys(owners) ?? fetchKeys(owners),
    /** Drops the cached keys. The keyring calls this when keys may have been deleted. */
    refresh(): void {
      clicks.refresh();
      days.refresh();
    },
  };
}

/** Returns the mark that an erased recipient has in place of the id; undefined for all others. */
function findMark({ id }: Person): string | undefined {
  return id === undefined ? undefined : markOfErased(id);
}
