import { randomBytes } from "node:crypto";
import { newKey, type KeyStore, type NamedKey } from "./key-store.ts";

/** What a day has keys for; the letter begins their refs. */
export const PURPOSES = { click: "c", message: "m", answer: "a" } as const;
export type Purpose = keyof typeof PURPOSES;

const DAY_MS = 24 * 3_600_000;

let lastDay = { number: -1, text: "" };

/** YYYY-MM-DD, UTC. Asked for every click, so that the day of the last one is held. */
export function dayOf(ms: number): string {
  const number = Math.floor(ms / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: new Date(ms).toISOString().slice(0, 10) };
  return lastDay.text;
}

/** The first day that is kept when `days` whole days before today are. */
export function firstKept(now: number, days: number): string {
  return dayOf(now - days * DAY_MS);
}

/** Bytes that distinguish two keys of one day: a day that comes again gets another one. */
const NONCE_BYTES = 4;

/** `m2026-11-21-1a2b3c4d`. */
const DAY_REF = /^[cma](\d{4}-\d\d-\d\d)-[0-9a-f]{8}$/;

/** Answers the ref of a day's key, which is made where there is none. */
export function dayRef(keys: KeyStore, purpose: Purpose, day: string): string {
  const prefix = `${PURPOSES[purpose]}${day}-`;
  const known = keys.refs(prefix)[0];
  if (known !== undefined) return rootOf(known);
  return keys.change(() => {
    // Another process may have made it meanwhile.
    const found = keys.refs(prefix)[0];
    if (found !== undefined) return rootOf(found);
    const ref = prefix + randomBytes(NONCE_BYTES).toString("hex");
    keys.put(ref, newKey());
    return ref;
  });
}

/** Keys of days held at once: some months. */
const HELD_MAX = 512;

/** The keys of what is nobody's in particular: one for a purpose and day. */
export function createDayKeys(keys: KeyStore) {
  const held = new Map<string, Uint8Array>();
  const current = new Map<Purpose, { readonly day: string; readonly ref: string }>();
  const at = (ref: string): Uint8Array | undefined => {
    const known = held.get(ref) ?? keys.get(ref);
    if (known === undefined || known === "gone") return undefined;
    if (held.size >= HELD_MAX) held.clear();
    held.set(ref, known);
    return known;
  };
  return {
    at,
    of(purpose: Purpose, now: number): NamedKey {
      const day = dayOf(now);
      const today = current.get(purpose);
      const ref = today?.day === day ? today.ref : dayRef(keys, purpose, day);
      const key = at(ref);
      current.set(purpose, { day, ref });
      if (key !== undefined) return { ref, key };
      // Deleted while it was held: the day gets another one.
      current.delete(purpose);
      return this.of(purpose, now);
    },
    refresh(): void {
      held.clear();
      current.clear();
    },
  };
}

/** Of a node's ref that of its tree. */
function rootOf(ref: string): string {
  return ref.split("/", 1)[0] ?? ref;
}

/** The days before `before` that still have a key. */
export function expiredDays(keys: KeyStore, purposes: readonly Purpose[], before: string): ReadonlySet<string> {
  return new Set(expiredRefs(keys, purposes, before).map(([day]) => day));
}

/** The newest day before `before` that anything has a key of; undefined: none has. */
export function newestDay(keys: KeyStore, before: string): string | undefined {
  const purposes = Object.keys(PURPOSES) as Purpose[];
  return [...expiredDays(keys, purposes, before)].sort().at(-1);
}

/** Deletes the keys of all days before `before`. Answers how many days that were. */
export function removeDays(keys: KeyStore, purposes: readonly Purpose[], before: string): number {
  return keys.change(() => {
    const expired = expiredRefs(keys, purposes, before);
    for (const [, ref] of expired) keys.remove(ref);
    return new Set(expired.map(([day]) => day)).size;
  });
}

function expiredRefs(
  keys: KeyStore,
  purposes: readonly Purpose[],
  before: string,
): readonly [day: string, ref: string][] {
  return purposes
    .flatMap((purpose) => keys.refs(PURPOSES[purpose]))
    .flatMap((ref): [string, string][] => {
      const day = DAY_REF.exec(rootOf(ref))?.[1];
      return day === undefined || day >= before ? [] : [[day, ref]];
    });
}
