import type { EventStore } from "eventstore-lite";
import type { DataOf, Event } from "../../events/catalog.ts";
import type { Erase } from "../projector/apply-erasures.ts";
import { firstKept, removeDays } from "./day-keys.ts";
import type { Keyring } from "./keyring.ts";

/**
 * Deletes all keys that the log says are deleted: a crash may have come between the event and the deletion, and a key
 * file brought back from a backup holds them again. A day that expired by a clock that was ahead is kept while nobody lets it expire.
 */
export async function applyErasures(store: EventStore<Event>, keyring: Keyring, now: number): Promise<void> {
  for await (const event of store.read({ types: ["PersonForgotten"] })) {
    if (event.type === "PersonForgotten" && destroyKeys(keyring, event.data) > 0) keyring.replaceStateKey();
  }
  for await (const event of store.read({ types: ["PersonalDataExpired"], backwards: true, limit: 1 })) {
    if (event.type !== "PersonalDataExpired") continue;
    const [recorded, latest] = [event.data.before, latestExpiry(now)];
    expireDays(keyring, recorded < latest ? recorded : latest);
  }
}

/** The least number of days that can be kept. */
const KEPT_DAYS_MIN = 1;

/** No day from this one on has expired, however few are kept. */
export function latestExpiry(now: number): string {
  return firstKept(now, KEPT_DAYS_MIN);
}

/** For who comes to such an event while following the log. States encrypted before it are given up with the keys. */
export function erasing(keyring: Keyring): Erase {
  return ({ data }) => {
    destroyKeys(keyring, data);
    keyring.replaceStateKey();
  };
}

/** Answers how many keys were there. */
export function destroyKeys(
  keyring: Keyring,
  { keys, spared }: Pick<DataOf<"PersonForgotten">, "keys" | "spared">,
): number {
  const left = keys.filter((ref) => keyring.has(ref));
  return left.length === 0 ? 0 : keyring.destroy(left, spared);
}

/** What expires after the days that the operator sets. */
export const EXPIRING = ["click", "message"] as const;

/** Deletes the keys of clicks, notifications and messages of the days before `before`. */
export function expireDays(keyring: Keyring, before: string): void {
  if (removeDays(keyring.keys, EXPIRING, before) > 0) keyring.refresh();
}
