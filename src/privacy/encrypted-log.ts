import type { Snapshots } from "eventstore-lite";
import { SegmentDamaged } from "eventstore-lite/segments";
import {
  encryptingCodec,
  type EncryptingCodec,
  type Event,
  makeEvent,
  type LogStore,
} from "../../events/event-types-and-codec.ts";
import { PERSONAL_PROJECTIONS } from "../../projections/all.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import type { OpenStoreOptions, StorePlace } from "../log/store-backends.ts";
import type { MakeId } from "../platform/clock-ids-and-timers.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
import { lastForgotten, parsePastName } from "../projector/past-snapshots.ts";
import { applyErasures } from "./delete-erased-and-expired-keys.ts";
import type { Keyring } from "./keyring.ts";
import { keysLost, newestKeys } from "./bind-secrets-to-log.ts";

export interface EncryptedLog extends LogStore {
  readonly keyring: Keyring;
  /**
   * Position up to which erasures are complete: the keys of all recipients forgotten until then were gone when the log
   * was opened.
   */
  readonly erasedTo: number;
  /** Decrypts stored events, in the same order. An event whose key is gone is returned as erased. */
  readonly open: EncryptingCodec<Event>["open"];
}

export interface EncryptedLogOptions extends Omit<OpenStoreOptions, "codec" | "writerTransform"> {
  readonly place: StorePlace;
  readonly keyring: Keyring;
  /** Name of the key store's place in error messages. */
  readonly keysName: string;
  readonly makeId: MakeId;
  /** True if an earlier start bound the key store to the log with this id. */
  readonly areBoundTo: (log: string) => Promise<boolean>;
  /**
   * Records that vault and keys belong to this log, or throws if they belong to another. The opening of the log calls
   * this before it repeats erasures, which delete keys.
   */
  readonly bind: (store: LogStore) => Promise<void>;
  /** True to continue with these keys although other keys encrypted the log, and to record that. */
  readonly acceptLostKeys?: boolean | undefined;
}

/** Module that encrypts events on the log's writer thread, outside of the thread that serves requests. */
const ENCRYPT_ON_WRITER = new URL("./encrypt-on-writer.ts", import.meta.url);

/**
 * Opens the log with the keys of its personal data, which stay open when the log is closed. Throws a ServiceError, and
 * what the store throws.
 */
export async function openEncryptedLog(options: EncryptedLogOptions): Promise<EncryptedLog> {
  const { place, keysName, keyring, clock, owner, onCommit, writerThread } = options;
  await using opening = new AsyncDisposableStack();
  const codec = encryptingCodec(keyring);
  const writing = { writerTransform: ENCRYPT_ON_WRITER, writerThread, clock, owner, onCommit };
  const store = opening.use(await place.open({ codec, ...writing }));
  const lost = await readNewestKeys(store, options);
  await options.bind(store);
  if (lost !== undefined && lost !== keyring.id) {
    if (options.acceptLostKeys !== true) throw keysLost(keysName, true);
    const data = { lost, replaced_by: keyring.id };
    await store.append(STREAMS.log, [makeEvent("PersonalKeysLost", options.makeId(), data, SERVICE_METADATA)]);
  }
  const { position: erasedTo } = await store.head();
  await applyErasures(store, keyring, await store.now());
  const resources = opening.move();
  return {
    ...store,
    snapshots: encryptSnapshots(store, keyring),
    keyring,
    erasedTo,
    open: codec.open,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/**
 * Returns the id of the key store that encrypted the newest event; undefined if nothing was encrypted. Also undefined
 * if the archived segment with that event is damaged, but the keys are known to be bound to this log.
 */
async function readNewestKeys(store: LogStore, { areBoundTo }: EncryptedLogOptions): Promise<string | undefined> {
  try {
    return await newestKeys(store);
  } catch (fault) {
    if (!(fault instanceof SegmentDamaged) || !(await areBoundTo(store.id))) throw fault;
    return undefined;
  }
}

const NAMES: ReadonlySet<string> = new Set(PERSONAL_PROJECTIONS);

/**
 * Encrypts snapshots that hold personal data. A snapshot whose key was replaced, or from before the last erasure,
 * counts as absent. Megabytes of state take milliseconds to encrypt, so other work gets a turn before and after.
 */
export function encryptSnapshots(store: LogStore, keyring: Keyring): Snapshots {
  const { snapshots } = store;
  return {
    async load(name) {
      const snapshot = await snapshots.load(name);
      if (snapshot === undefined || snapshot.state === "" || !isPersonal(name)) return snapshot;
      // A state that was folded before the last erasure still holds the erased recipient, so it counts as absent. For a
      // past snapshot, its name says up to which position erasures were applied (`since`).
      const since = parsePastName(name)?.since ?? snapshot.position;
      if (since < (await lastForgotten(store))) return undefined;
      await nextTurn();
      const state = await keyring.openState(toContext(name), snapshot.state);
      await nextTurn();
      return state === undefined ? undefined : { ...snapshot, state };
    },
    async save(name, snapshot, alsoAs) {
      const isEncrypted = isPersonal(name) && snapshot.state !== "";
      await nextTurn();
      const state = isEncrypted ? await keyring.encryptState(toContext(name), snapshot.state) : snapshot.state;
      await nextTurn();
      await snapshots.save(name, { ...snapshot, state }, alsoAs);
    },
    list: snapshots.list,
    remove: snapshots.remove,
  };
}

/**
 * True if the snapshot of this name holds personal data. Snapshots of a rebuild or of a past moment count too: their
 * names contain that of the projection, as in `rebuilt/contacts`.
 */
function isPersonal(name: string): boolean {
  return NAMES.has(parsePastName(name)?.projection ?? name.slice(name.lastIndexOf("/") + 1));
}

/**
 * Returns the context that a snapshot's ciphertext is bound to. A past snapshot has the context of the newest one,
 * because it has the same bytes.
 */
function toContext(name: string): string {
  return parsePastName(name)?.projection ?? name;
}
