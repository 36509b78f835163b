import { randomBytes } from "node:crypto";
import { newKey, type KeysFile } from "./keys-file.ts";

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

/** Bytes that tell two keys of one day apart: a day that comes again gets another one. */
const NONCE_BYTES = 4;

/** `m2026-11-21-1a2b3c4d`. */
const DAY_REF = /^[cma](\d{4}-\d\d-\d\d)-[0-9a-f]{8}$/;

/** Answers the ref of a day's key, which is made where there is none. */
export function dayRef(file: KeysFile, purpose: Purpose, day: string): string {
  const prefix = `${PURPOSES[purpose]}${day}-`;
  const known = file.first(prefix);
  if (known !== undefined) return rootOf(known);
  return file.change(() => {
    // Another process may have made it meanwhile.
    const found = file.first(prefix);
    if (found !== undefined) return rootOf(found);
    const ref = prefix + randomBytes(NONCE_BYTES).toString("hex");
    file.put(ref, newKey());
    return ref;
  });
}

/** Of a node's ref that of its tree. */
function rootOf(ref: string): string {
  return ref.split("/", 1)[0] ?? ref;
}

/** The days before `before` that still have a key. */
export function expiredDays(file: KeysFile, purposes: readonly Purpose[], before: string): ReadonlySet<string> {
  return new Set(expiredRefs(file, purposes, before).map(([day]) => day));
}

/** The newest day before `before` that anything has a key of; undefined: none has. */
export function newestDay(file: KeysFile, before: string): string | undefined {
  const purposes = Object.keys(PURPOSES) as Purpose[];
  return [...expiredDays(file, purposes, before)].sort().at(-1);
}

/** Deletes the keys of all days before `before`. Answers how many days that were. */
export function removeDays(file: KeysFile, purposes: readonly Purpose[], before: string): number {
  return file.change(() => {
    const expired = expiredRefs(file, purposes, before);
    for (const [, ref] of expired) file.remove(ref);
    return new Set(expired.map(([day]) => day)).size;
  });
}

function expiredRefs(
  file: KeysFile,
  purposes: readonly Purpose[],
  before: string,
): readonly [day: string, ref: string][] {
  return purposes
    .flatMap((purpose) => file.refs(PURPOSES[purpose]))
    .flatMap((ref): [string, string][] => {
      const day = DAY_REF.exec(rootOf(ref))?.[1];
      return day === undefined || day >= before ? [] : [[day, ref]];
    });
}
