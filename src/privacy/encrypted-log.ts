import { openSqliteStore, type Commit, type EventStore } from "eventstore-lite";
import { makeEvent, encryptingCodec, type Event, type EncryptingCodec } from "../../events/catalog.ts";
import type { Clock, MakeId } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import type { LogFiles } from "../log/log-files.ts";
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

export interface EncryptedLogOptions {
  readonly files: Pick<LogFiles, "log" | "keys">;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly makeId: MakeId;
  /** Opens the log as the one service of it, described to others by that text. */
  readonly owner?: string | undefined;
  /** Goes on with these keys although the log was encrypted with others, and records that. */
  readonly acceptLostKeys?: boolean | undefined;
  /** Called after each transaction of appends. */
  readonly onCommit?: ((commit: Commit) => void) | undefined;
}

/** Encrypts beside the thread that serves requests. */
const ENCRYPT_ON_WRITER = new URL("./encrypt-on-writer.ts", import.meta.url);

/** Opens the log with the keys of its personal data, which stay open behind it. Throws a ServiceError, and what the store throws. */
export async function openEncryptedLog(options: EncryptedLogOptions): Promise<EncryptedLog> {
  const { files, keyring, clock, owner, onCommit } = options;
  await using opening = new AsyncDisposableStack();
  const codec = encryptingCodec(keyring);
  const ownership = owner === undefined ? {} : { owner: { holder: owner } };
  const measured = onCommit === undefined ? {} : { onCommit };
  const store = opening.use(
    await openSqliteStore<Event>({
      file: files.log,
      codec,
      finish: ENCRYPT_ON_WRITER,
      clock,
      ...ownership,
      ...measured,
    }),
  );
  const lost = await newestKeys(store);
  if (lost !== undefined && lost !== keyring.id) {
    if (options.acceptLostKeys !== true) throw keysLost(files.keys, true);
    const data = { lost, replaced_by: keyring.id };
    await store.append(STREAMS.log, [makeEvent("PersonalKeysLost", options.makeId(), data, SERVICE_METADATA)]);
  }
  const { position: erasedTo } = await store.head();
  await applyErasures(store, keyring, clock());
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
