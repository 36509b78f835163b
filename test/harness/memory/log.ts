/** The memory harness: parts of the service in the test's process, on a real log in a temporary folder. */
import { openPostgresStore, openSqliteStore, type EventStore } from "eventstore-lite";
import { newDatabase } from "eventstore-lite/testing/postgres-server";
import { codec, type Event, type EventType, type Recorded } from "../../../events/catalog.ts";
import type { Notes } from "../../../src/log/checkpoint.ts";
import { createEventLog, type EventLog } from "../../../src/log/event-log.ts";
import { postgresStore, sqliteStore } from "../../../src/log/store-backends.ts";
import { systemClock, type Clock, type MakeId } from "../../../src/platform/clock.ts";
import type { Logger } from "../../../src/platform/logger.ts";
import { secret } from "../../../src/platform/secret.ts";
import { openEncryptedLog, type EncryptedLog } from "../../../src/privacy/encrypted-log.ts";
import { keysIn } from "../../../src/privacy/key-store.ts";
import { openKeyring } from "../../../src/privacy/keyring.ts";
import { openSecretStore } from "../../../src/vault/encrypted-secrets.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import { temporaryFolder, type TemporaryFolder } from "../temporary.ts";

export const METADATA = { caller: "tests" };

export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Path of a log that does not exist yet. */
export function newLogFile(): string {
  return temporaryFolder().file("log.sqlite");
}

/** An open log, and ways to query it. */
export interface MemoryLog extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly store: EventStore<Event>;
  readonly eventLog: EventLog;
  /** Current events of these types. */
  events<T extends EventType>(...types: T[]): Promise<Recorded<T>[]>;
  /** Ends `part` before the log closes, newest part first. */
  use<Part extends Disposable | AsyncDisposable>(part: Part): Part;
}

export interface MemoryLogOptions {
  readonly clock?: Clock;
  readonly makeId?: MakeId;
  /** Opens this file instead of a new log. */
  readonly file?: string;
  /** Default: a file. */
  readonly engine?: LogEngine;
}

/** Engines for `test.each`: a protection above the log has to hold on both. */
export const LOG_ENGINES = ["in a file", "on a server"] as const;
export type LogEngine = (typeof LOG_ENGINES)[number];

export async function openMemoryLog(options: MemoryLogOptions = {}): Promise<MemoryLog> {
  const { clock, makeId = randomId, file, engine = "in a file" } = options;
  const stack = new AsyncDisposableStack();
  const folder = stack.use(temporaryFolder());
  const common = { codec, ...(clock === undefined ? {} : { clock }) };
  const opening =
    engine === "in a file"
      ? openSqliteStore<Event>({ file: file ?? folder.file("log.sqlite"), ...common })
      : openPostgresStore<Event>({ url: await newDatabase(), ...common });
  return logOn(stack.use(await opening), folder, stack, makeId);
}

function logOn(
  store: EventStore<Event>,
  folder: TemporaryFolder,
  stack: AsyncDisposableStack,
  makeId: MakeId = randomId,
): MemoryLog {
  return {
    folder,
    store,
    eventLog: createEventLog(store, makeId),
    async events<T extends EventType>(...types: T[]) {
      return (await Array.fromAsync(store.read({ types }))) as Recorded<T>[];
    },
    use: (part) => stack.use(part),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A log with encrypted personal data, as the service opens it. */
export interface EncryptedMemoryLog extends MemoryLog {
  readonly store: EncryptedLog;
}

export async function openEncryptedMemoryLog(
  master: Uint8Array,
  clock?: Clock,
  engine: LogEngine = "in a file",
): Promise<EncryptedMemoryLog> {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(temporaryFolder());
  const files = { log: folder.file("log.sqlite"), keys: folder.file("keys.sqlite") };
  const secrets = stack.use(await openSecretStore({ place: sqliteSecrets(files.keys), master }));
  const keyring = await openKeyring(keysIn(secrets), systemClock);
  const store = stack.use(
    await openEncryptedLog({
      place:
        engine === "in a file"
          ? sqliteStore(files.log)
          : postgresStore({ url: secret(await newDatabase()), shown: "the test's server" }),
      keysName: files.keys,
      keyring,
      areBoundTo: async () => true,
      bind: async () => {},
      makeId: randomId,
      clock,
    }),
  );
  return { ...logOn(store, folder, stack), store };
}

export const randomId: MakeId = () => crypto.randomUUID();

/** Notes as a vault stores them. */
export function newNotes(): Notes {
  const notes = new Map<string, string>();
  return {
    note: async (name) => notes.get(name),
    async keepNote(name, text) {
      if (text === undefined) notes.delete(name);
      else notes.set(name, text);
    },
  };
}
