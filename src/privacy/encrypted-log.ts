import { existsSync } from "node:fs";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import {
  makeEvent,
  ENCRYPTED_TYPES,
  encryptingCodec,
  type Event,
  type EventType,
  type EncryptingCodec,
} from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import type { Clock, MakeId } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { applyErasures } from "./apply-erasures.ts";
import { openKeyring, type Keyring } from "./keyring.ts";
import { encryptSnapshots } from "./encrypted-snapshots.ts";
import { ServiceError } from "../platform/service-error.ts";

/** A log whose personal data is sealed. */
export interface EncryptedLog extends EventStore<Event> {
  readonly keyring: Keyring;
  /** Shows a stored event as it was written, or as erased. */
  readonly open: EncryptingCodec<Event>["open"];
}

export interface EncryptedLogOptions {
  readonly file: string;
  readonly keysFile: string;
  /** The master key in force. */
  readonly master: () => Uint8Array;
  readonly clock: Clock;
  readonly makeId: MakeId;
  /** Opens the log as the one service of it, described to others by that text. */
  readonly owner?: string | undefined;
  /** Goes on with new keys although the log was sealed with others, and records that. */
  readonly acceptLostKeys?: boolean;
}

/** Makes the boxes, beside the thread that serves requests. */
const SEAL_ON_WRITER = new URL("./encrypt-on-writer.ts", import.meta.url);

/** Opens the log and its keys. Throws {@link KeysLost}, KeysFileMismatch, and what the store throws. */
export async function openEncryptedLog(options: EncryptedLogOptions): Promise<EncryptedLog> {
  const { file, owner, keysFile, master, clock } = options;
  await using opening = new AsyncDisposableStack();
  const late: { keyring?: Keyring } = {};
  const codec = encryptingCodec(() => late.keyring);
  const ownership = owner === undefined ? {} : { owner: { holder: owner } };
  const store = opening.use(await openSqliteStore<Event>({ file, codec, finish: SEAL_ON_WRITER, clock, ...ownership }));
  const lost = await newestKeys(store);
  // Made only where nothing is missing: an empty one would look as if everybody had been erased.
  const isThere = existsSync(keysFile);
  if (lost !== undefined && !isThere && options.acceptLostKeys !== true) throw keysLost(keysFile, false);
  const keyring = opening.use(openKeyring(keysFile, master, clock));
  late.keyring = keyring;
  if (lost !== undefined && lost !== keyring.file.id) {
    if (options.acceptLostKeys !== true) throw keysLost(keysFile, isThere);
    const data = { lost, replaced_by: keyring.file.id };
    await store.append(STREAMS.log, [makeEvent("PersonalKeysLost", options.makeId(), data, SERVICE_METADATA)]);
  }
  await applyErasures(store, keyring, clock());
  const resources = opening.move();
  return {
    ...store,
    snapshots: encryptSnapshots(store, keyring),
    keyring,
    open: codec.open,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Of these some have nothing personal, and no box: nobody knows how many in a row. */
const MAY_BE_OPEN: readonly EventType[] = ["LinkClicked", "SourceRead", "AuthenticationsFailed"];

/** Those that may have none are looked through so far; whoever seals them alone has others of them that are. */
const LOOKED_AT_MAX = 1_000;

/** The id of the key file that sealed the newest event; undefined: nothing was sealed yet. */
async function newestKeys(store: EventStore<Event>): Promise<string | undefined> {
  const always = ENCRYPTED_TYPES.filter((type) => !MAY_BE_OPEN.includes(type));
  const found = [
    await newestIn(store, ["PersonalKeysLost", ...always], 1),
    await newestIn(store, MAY_BE_OPEN, LOOKED_AT_MAX),
  ];
  return found.flatMap((one) => one ?? []).sort((a, b) => b.position - a.position)[0]?.keys;
}

interface Sealed {
  readonly position: number;
  readonly keys: string | undefined;
}

async function newestIn(
  store: EventStore<Event>,
  types: readonly EventType[],
  limit: number,
): Promise<Sealed | undefined> {
  for await (const { type, data, position } of store.readStored({ types, backwards: true, limit })) {
    if (type === "PersonalKeysLost") return { position, keys: (data as { replaced_by: string }).replaced_by };
    const box = ciphertextOf(data);
    if (box !== undefined) return { position, keys: box.split(":", 1)[0] };
  }
  return undefined;
}

/** The log holds what was encrypted with keys that are not in the key file. */
function keysLost(file: string, isThere: boolean): ServiceError {
  return new ServiceError(
    "configuration",
    `${file} ${isThere ? "does not belong to this log" : "is gone"}: without its key file nobody can read the personal ` +
      "data in the log, nor erase any of it. Put the file back; or, to go on without that data, run " +
      "reachlog serve --accept-lost-keys",
  );
}
