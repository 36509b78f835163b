import type { EventStore, Snapshots } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PERSONAL_PROJECTIONS } from "../../projections/all.ts";
import type { Keyring } from "./keyring.ts";

const NAMES: ReadonlySet<string> = new Set(PERSONAL_PROJECTIONS);

/** A state that was folded before somebody was forgotten holds them still. */
async function isOutdated(store: EventStore<Event>, name: string, position: number): Promise<boolean> {
  if (!isPersonal(name)) return false;
  return position < (await lastForgotten(store));
}

/** Where the log last tells that somebody was forgotten; 0: nowhere. */
export async function lastForgotten(store: EventStore<Event>): Promise<number> {
  for await (const { position } of store.readStored({ types: ["PersonForgotten"], backwards: true, limit: 1 })) {
    return position;
  }
  return 0;
}

/**
 * Seals the states that hold personal data. One whose key was replaced since, or that is of before somebody was
 * forgotten, counts as absent.
 */
export function encryptSnapshots(store: EventStore<Event>, keyring: Keyring): Snapshots {
  const { snapshots } = store;
  return {
    async load(name) {
      const snapshot = await snapshots.load(name);
      if (snapshot === undefined || snapshot.state === "" || !isPersonal(name)) return snapshot;
      if (await isOutdated(store, name, snapshot.position)) return undefined;
      const state = keyring.openState(name, snapshot.state);
      return state === undefined ? undefined : { ...snapshot, state };
    },
    async save(name, snapshot) {
      const isSealed = isPersonal(name) && snapshot.state !== "";
      await snapshots.save(name, isSealed ? { ...snapshot, state: keyring.sealState(name, snapshot.state) } : snapshot);
    },
  };
}

/** Those that a replay keeps have names such as `rebuilt/contacts`. */
function isPersonal(name: string): boolean {
  return NAMES.has(name.slice(name.lastIndexOf("/") + 1));
}
