import { setImmediate as nextTurn } from "node:timers/promises";
import type { EventStore, Snapshots } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PERSONAL_PROJECTIONS } from "../../projections/all.ts";
import { lastForgotten, pastOf } from "../projector/past.ts";
import type { Keyring } from "./keyring.ts";

const NAMES: ReadonlySet<string> = new Set(PERSONAL_PROJECTIONS);

/** A state that was folded before the last erasure still holds the erased person. */
async function isOutdated(store: EventStore<Event>, name: string, position: number): Promise<boolean> {
  const since = pastOf(name)?.since ?? position;
  return since < (await lastForgotten(store));
}

/**
 * Encrypts the states that hold personal data. A state whose key was replaced since, or that is older than the last
 * erasure, counts as absent. With 50,000 people it is two megabytes, which take milliseconds to encrypt, and as long
 * before and after that: so other work gets its turn in between.
 */
export function encryptSnapshots(store: EventStore<Event>, keyring: Keyring): Snapshots {
  const { snapshots } = store;
  return {
    async load(name) {
      const snapshot = await snapshots.load(name);
      if (snapshot === undefined || snapshot.state === "" || !isPersonal(name)) return snapshot;
      if (await isOutdated(store, name, snapshot.position)) return undefined;
      await nextTurn();
      const state = await keyring.openState(contextOf(name), snapshot.state);
      await nextTurn();
      return state === undefined ? undefined : { ...snapshot, state };
    },
    async save(name, snapshot, alsoAs) {
      const isEncrypted = isPersonal(name) && snapshot.state !== "";
      await nextTurn();
      const state = isEncrypted ? await keyring.encryptState(contextOf(name), snapshot.state) : snapshot.state;
      await nextTurn();
      await snapshots.save(name, { ...snapshot, state }, alsoAs);
    },
    list: snapshots.list,
    remove: snapshots.remove,
  };
}

/** Those that a replay keeps have names such as `rebuilt/contacts`. */
function isPersonal(name: string): boolean {
  return NAMES.has(pastOf(name)?.projection ?? name.slice(name.lastIndexOf("/") + 1));
}

/** What a ciphertext is bound to. One of the past has the bytes of the newest that it once was. */
function contextOf(name: string): string {
  return pastOf(name)?.projection ?? name;
}
