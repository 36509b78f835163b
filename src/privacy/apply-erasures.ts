import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Erase } from "../projector/apply-erasures.ts";
import { inChunks } from "../platform/time-slices.ts";
import { firstKept, removeDays } from "./day-keys.ts";
import type { Keyring } from "./keyring.ts";

/**
 * Deletes all keys that the log says are deleted: a crash may have come between the event and the deletion, and a key
 * file brought back from a backup holds them again. A day that expired by a clock that was ahead is kept until it expires
 * by a right one.
 */
export async function applyErasures(store: EventStore<Event>, keyring: Keyring, now: number): Promise<void> {
  for await (const events of inChunks(store.read({ types: ["PersonForgotten"] }), ASKED_AT_ONCE)) {
    const erasures = events.flatMap((event) => (event.type === "PersonForgotten" ? [event.data] : []));
    const left = new Set(await keyring.left(erasures.flatMap(({ keys }) => keys)));
    for (const { keys, spared } of erasures) {
      if (!keys.some((ref) => left.has(ref))) continue;
      if ((await keyring.destroy(keys, spared)) > 0) await keyring.replaceStateKey();
    }
  }
  for await (const event of store.read({ types: ["PersonalDataExpired"], backwards: true, limit: 1 })) {
    if (event.type !== "PersonalDataExpired") continue;
    const [recorded, latest] = [event.data.before, latestExpiry(now)];
    await expireDays(keyring, recorded < latest ? recorded : latest);
  }
}

/** Erasures whose keys are asked for together: most hold a few, some thousands. */
const ASKED_AT_ONCE = 16;

/** The least number of days that can be kept. */
const KEPT_DAYS_MIN = 1;

/** No day from this one on has expired, however few are kept. */
export function latestExpiry(now: number): string {
  return firstKept(now, KEPT_DAYS_MIN);
}

/** For who comes to such an event while following the log. States encrypted before it are given up with the keys. */
export function createEraseHandler(keyring: Keyring): Erase {
  return async ({ data }) => {
    await keyring.destroy(data.keys, data.spared);
    await keyring.replaceStateKey();
  };
}

/** What expires after the days that the operator sets. */
export const EXPIRING = ["click", "message"] as const;

/** Deletes the keys of clicks, notifications and messages of the days before `before`. */
export async function expireDays(keyring: Keyring, before: string): Promise<void> {
  if ((await removeDays(keyring.keys, EXPIRING, before)) > 0) keyring.refresh();
}
