import { randomBytes } from "node:crypto";
import { DAY_MS, toDay } from "../../projections/parse-log-times.ts";
import { newKey, splitRef, type KeyStore, type NamedKey, type StoredKeys } from "./key-store.ts";

/** Purposes for which data is encrypted with one key a day; the letter begins the refs (names) of those keys. */
const PURPOSES = { click: "c", message: "m", answer: "a", visitor: "v" } as const;
export type Purpose = keyof typeof PURPOSES;

/** Returns the first day whose data is kept if `days` whole days before today are kept. */
export function firstKept(now: number, days: number): string {
  return toDay(now - days * DAY_MS);
}

const NONCE_BYTES = 4;

/**
 * Makes an unused ref (name) for the key of a day, such as `m2026-11-21-1a2b3c4d`. If the clock returns to a day, its
 * new key gets another ref.
 */
export function newDayRef(purpose: Purpose, day: string): string {
  return `${PURPOSES[purpose]}${day}-${randomBytes(NONCE_BYTES).toString("hex")}`;
}

const DAY_REF = /^[cmav](\d{4}-\d\d-\d\d)-[0-9a-f]{8}$/;

/**
 * True for the ref (name) of a day's salt, with which visitors of links are hashed. Once the salt is deleted, the
 * visitors of that day cannot be compared with those of another day.
 */
export function isVisitorRef(ref: string): boolean {
  return ref.startsWith(PURPOSES.visitor) && DAY_REF.test(ref);
}

/** Keys of data that belongs to no single recipient: one for each purpose and day. */
export function createDayKeys(keys: KeyStore) {
  let current = new Map<Purpose, { readonly day: string; readonly key: NamedKey }>();
  return {
    /** Returns today's key of a purpose; undefined if `prepare` has to be called first. */
    of(purpose: Purpose, now: number): NamedKey | undefined {
      const today = current.get(purpose);
      return today?.day === toDay(now) ? today.key : undefined;
    },
    /** Fetches today's encryption key of a purpose from the key store, or creates it there, and caches it. */
    async prepare(purpose: Purpose, now: number): Promise<void> {
      const day = toDay(now);
      const asOf = current;
      const key = (await findDayKey(keys, purpose, day)) ?? (await makeDayKey(keys, purpose, day));
      if (asOf === current) current.set(purpose, { day, key });
    },
    /** Drops the cached keys. The keyring calls this when keys may have been deleted. */
    refresh(): void {
      current = new Map();
    },
  };
}

async function findDayKey(keys: StoredKeys, purpose: Purpose, day: string): Promise<NamedKey | undefined> {
  const found = await keys.under(`${PURPOSES[purpose]}${day}-`);
  for (const [ref, key] of found) if (key !== "gone") return { ref, key };
  return undefined;
}

function makeDayKey(keys: KeyStore, purpose: Purpose, day: string): Promise<NamedKey> {
  return keys.change(async (within) => {
    // The day's key is looked for again within the change, because another process may have made it since the cache was
    // filled.
    const found = await findDayKey(within, purpose, day);
    if (found !== undefined) return found;
    const made = { ref: newDayRef(purpose, day), key: newKey() };
    await within.put(made.ref, made.key);
    return made;
  });
}

/** Returns the days before `before` that still have a key for one of the purposes. */
export async function expiredDays(keys: StoredKeys, purposes: readonly Purpose[], before: string) {
  return new Set((await expiredRefs(keys, purposes, before)).map(([day]) => day));
}

/** The newest day before `before` that has any key; undefined if none has. */
export async function newestDay(keys: StoredKeys, before: string): Promise<string | undefined> {
  const purposes = Object.keys(PURPOSES) as Purpose[];
  return [...(await expiredDays(keys, purposes, before))].sort().at(-1);
}

/** Deletes the keys of these purposes for all days before `before`. Returns the number of these days. */
export async function removeDays(keys: KeyStore, purposes: readonly Purpose[], before: string): Promise<number> {
  if ((await expiredDays(keys, purposes, before)).size === 0) return 0;
  return keys.change(async (within) => {
    const expired = await expiredRefs(within, purposes, before);
    await Promise.all(expired.map(([, ref]) => within.remove(ref)));
    return new Set(expired.map(([day]) => day)).size;
  });
}

async function expiredRefs(keys: StoredKeys, purposes: readonly Purpose[], before: string) {
  const refs = await Promise.all(purposes.map((purpose) => keys.refs(PURPOSES[purpose])));
  return refs.flat().flatMap((ref): [string, string][] => {
    const day = DAY_REF.exec(splitRef(ref)[0])?.[1];
    return day === undefined || day >= before ? [] : [[day, ref]];
  });
}
