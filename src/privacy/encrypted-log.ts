import type { EventStore } from "eventstore-lite";
import { makeEvent, encryptingCodec, type Event, type EncryptingCodec } from "../../events/catalog.ts";
import type { MakeId } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import type { OpenStoreOptions, StorePlace } from "../log/store-place.ts";
import { applyErasures } from "./apply-erasures.ts";
import { encryptSnapshots } from "./encrypted-snapshots.ts";
import type { Keyring } from "./keyring.ts";
import { keysLost, newestKeys } from "./lost-keys.ts";

/** A log whose personal data is encrypted. */
export interface EncryptedLog extends EventStore<Event> {
  readonly keyring: Keyring;
  /** The keys of all who were forgotten up to this position were gone when the log was opened. */
  readonly erasedTo: number;
  /** Shows stored events as they were written, or as erased, each in its place. */
  readonly open: EncryptingCodec<Event>["open"];
}

export interface EncryptedLogOptions extends Omit<OpenStoreOptions, "codec" | "finish"> {
  readonly place: StorePlace;
  readonly keyring: Keyring;
  /** How errors name where the keys are. */
  readonly keysName: string;
  readonly makeId: MakeId;
  /** Binds the keys to the log, before it does anything to them. */
  readonly bind: (store: EventStore<Event>) => Promise<void>;
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
  const store = opening.use(await place.open({ codec, finish: ENCRYPT_ON_WRITER, clock, owner, onCommit }));
  await options.bind(store);
  const lost = await newestKeys(store);
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
