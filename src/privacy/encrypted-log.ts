import { SegmentDamaged, type Snapshots } from "eventstore-lite";
import { encryptingCodec, type EncryptingCodec, type Event, makeEvent, type LogStore } from "../../events/catalog.ts";
import { PERSONAL_PROJECTIONS } from "../../projections/all.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import type { OpenStoreOptions, StorePlace } from "../log/store-backends.ts";
import type { MakeId } from "../platform/clock.ts";
import { nextTurn } from "../platform/time-slices.ts";
import { lastForgotten, parsePastName } from "../projector/snapshots.ts";
import { applyErasures } from "./retention.ts";
import type { Keyring } from "./keyring.ts";
import { keysLost, newestKeys } from "./secrets-binding.ts";

export interface EncryptedLog extends LogStore {
  readonly keyring: Keyring;
  /** The keys of all who were forgotten up to this position were gone when the log was opened. */
  readonly erasedTo: number;
  /** Shows stored events as they were written, or as erased, each in its place. */
  readonly open: EncryptingCodec<Event>["open"];
}

export interface EncryptedLogOptions extends Omit<OpenStoreOptions, "codec" | "writerTransform"> {
  readonly place: StorePlace;
  readonly keyring: Keyring;
  /** How errors name where the keys are. */
  readonly keysName: string;
  readonly makeId: MakeId;
  /** True if the keys were bound to that log by an earlier start. */
  readonly areBoundTo: (log: string) => Promise<boolean>;
  /** Binds the keys to the log, before it does anything to them. */
  readonly bind: (store: LogStore) => Promise<void>;
  /** Goes on with these keys although the log was encrypted with others, and records that. */
  readonly acceptLostKeys?: boolean | undefined;
}

/** Encrypts beside the thread that serves requests. */
const ENCRYPT_ON_WRITER = new URL("./encrypt-on-writer.ts", import.meta.url);

/**
 * Opens the log with the keys of its personal data, which stay open behind it. Throws a ServiceError, and what the
 * store throws.
 */
export async function openEncryptedLog(options: EncryptedLogOptions): Promise<EncryptedLog> {
  const { place, keysName, keyring, clock, owner, onCommit } = options;
  await using opening = new AsyncDisposableStack();
  const codec = encryptingCodec(keyring);
  const store = opening.use(await place.open({ codec, writerTransform: ENCRYPT_ON_WRITER, clock, owner, onCommit }));
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
 * The id of the keys that the newest event was encrypted with. Undefined also if the archived segment that says so cannot be
 * read, and the keys' binding to this log says the same.
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
 * Encrypts the states that hold personal data. A state whose key was replaced since, or that is older than the last
 * erasure, counts as absent. With 50,000 people it is two megabytes, which take milliseconds to encrypt, and as long
 * before and after that: so other work gets its turn in between.
 */
export function encryptSnapshots(store: LogStore, keyring: Keyring): Snapshots {
  const { snapshots } = store;
  return {
    async load(name) {
      const snapshot = await snapshots.load(name);
      if (snapshot === undefined || snapshot.state === "" || !isPersonal(name)) return snapshot;
      // A state that was folded before the last erasure still holds the erased person.
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

/** Those that a replay keeps have names such as `rebuilt/contacts`. */
function isPersonal(name: string): boolean {
  return NAMES.has(parsePastName(name)?.projection ?? name.slice(name.lastIndexOf("/") + 1));
}

/** What a ciphertext is bound to. One of the past has the bytes of the newest that it once was. */
function toContext(name: string): string {
  return parsePastName(name)?.projection ?? name;
}
