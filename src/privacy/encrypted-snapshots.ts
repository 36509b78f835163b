import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
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

/** Where in the log somebody was last forgotten; 0: nowhere. */
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
      const packed = keyring.openState(name, snapshot.state);
      const state = packed === undefined ? undefined : unpack(packed);
      return state === undefined ? undefined : { ...snapshot, state };
    },
    async save(name, snapshot) {
      const isEncrypted = isPersonal(name) && snapshot.state !== "";
      const state = isEncrypted ? keyring.encryptState(name, pack(snapshot.state)) : snapshot.state;
      await snapshots.save(name, { ...snapshot, state });
    },
  };
}

/** Those that a replay keeps have names such as `rebuilt/contacts`. */
function isPersonal(name: string): boolean {
  return NAMES.has(name.slice(name.lastIndexOf("/") + 1));
}

/** A list of people is a tenth of its size then, and costs less to encrypt and to write to the disk. */
function pack(state: string): string {
  return deflateRawSync(state, { level: constants.Z_BEST_SPEED }).toString("base64");
}

/** Undefined: it was packed otherwise. */
function unpack(packed: string): string | undefined {
  try {
    return inflateRawSync(Buffer.from(packed, "base64")).toString();
  } catch {
    return undefined;
  }
}
