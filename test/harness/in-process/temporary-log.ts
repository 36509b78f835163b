/**
 * The in-process harness runs parts of the service in the test's process, without starting the service. The log is real
 * and in a temporary folder.
 */
import { openSqliteStore, type EventStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newLogPlace } from "eventstore-lite/testing";
import { codec, type Event, type EventType, type Recorded } from "../../../events/event-types-and-codec.ts";
import type { Notes } from "../../../src/log/sign-and-compare-checkpoints.ts";
import { createEventLog, type EventLog, type LogContext, type StateContext } from "../../../src/log/event-log.ts";
import { sleep, systemClock, type Clock, type MakeId } from "../../../src/platform/clock-ids-and-timers.ts";
import type { Logger } from "../../../src/platform/logger.ts";
import { temporaryFolder, type TemporaryFolder } from "../temporary-folder.ts";
import type { Projector } from "../../../src/projector/projector.ts";

export const METADATA = { caller: "tests" };

export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Returns the path of a log that does not exist yet. */
export function newLogFile(): string {
  return temporaryFolder().file("log.sqlite");
}

/** Open log of a test, and ways to query it. */
export interface MemoryLog extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly store: EventStore<Event>;
  readonly eventLog: EventLog;
  /** Returns all events of these types that the log has now. */
  events<T extends EventType>(...types: T[]): Promise<Recorded<T>[]>;
  /** Registers `part` to be disposed before the log closes. The part that was registered last is disposed first. */
  use<Part extends Disposable | AsyncDisposable>(part: Part): Part;
}

export interface MemoryLogOptions {
  readonly clock?: Clock;
  readonly makeId?: MakeId;
  /** File of an existing log to open instead of a new one. */
  readonly file?: string;
  /** Place of the log, in a file or on a server; default: in a file. */
  readonly engine?: LogEngine;
}

/** Where the log is, for `test.each`: both engines must keep the same promises. */
export const LOG_ENGINES = ["in a file", "on a server"] as const;
export type LogEngine = (typeof LOG_ENGINES)[number];

/** Interval at which a log asks its file for appends by others. Tests with two instances on one file wait for it. */
const POLL_MS = 5;

export async function openMemoryLog(options: MemoryLogOptions = {}): Promise<MemoryLog> {
  const { clock, makeId = randomId, file, engine = "in a file" } = options;
  const stack = new AsyncDisposableStack();
  const folder = stack.use(temporaryFolder());
  const common = { codec, writerThread: false, ...(clock === undefined ? {} : { clock }) };
  const opening =
    engine === "in a file"
      ? openSqliteStore<Event>({ file: file ?? folder.file("log.sqlite"), pollMs: POLL_MS, ...common })
      : openPostgresStore<Event>({ ...stack.use(await newLogPlace()), ...common });
  return logOn(stack.use(await opening), folder, stack, makeId);
}

export function logOn(
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

/** Returns the context of a test's process, with defaults for all that `given` leaves out. */
export function toLogContext(eventLog: EventLog, given: Partial<LogContext> = {}): LogContext {
  const time = { clock: systemClock, sleep, random: () => 0.5 };
  return { eventLog, logger: SILENT, makeId: randomId, holder: "tests", ...time, ...given };
}

/** Returns the context of {@link toLogContext}, with the states folded from the log. */
export function toStateContext(
  parts: { readonly eventLog: EventLog; readonly projector: Projector },
  given: Partial<StateContext> = {},
): StateContext {
  const { eventLog, projector } = parts;
  return { ...toLogContext(eventLog, given), projector, announce: async () => {}, ...given };
}

export const randomId: MakeId = () => crypto.randomUUID();

/**
 * Creates a store of notes in memory. Notes are short texts, such as a log's checkpoint, which the service stores in
 * the vault.
 */
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
