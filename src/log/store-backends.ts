import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import {
  isStoreError,
  type Codec,
  type Commit,
  type Head,
  type NewEvent,
  type Recorded,
  importSqliteLog,
  maintainSqliteLog,
  openSqliteStore,
} from "eventstore-lite";
import {
  beginPostgresEpoch,
  identifyPostgresLog,
  importPostgresLog,
  isPostgresLogElsewhere,
  knownPostgresPlace,
  openPostgresStore,
  type PlaceKnown,
  restorePostgresLog,
  isLost,
  openDatabase,
  sqlState,
} from "eventstore-lite/postgres";
import { createSegmentFolder, type SegmentStorage } from "eventstore-lite/segments";
import type { Event, LogStore } from "../../events/event-types-and-codec.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import { logFiles } from "./log-file-paths.ts";
import type { LogIdentity } from "./log-fingerprint.ts";
import { refuseServed } from "./instance-heartbeats.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** Place of a log, in a file or on a server, that exists or is to be created. */
export interface StorePlace {
  /** Name of the log's place in error messages. */
  readonly name: string;
  isThere(): Promise<boolean>;
  /** Returns the identity of the log at the place; undefined if there is none. */
  identify(): Promise<LogIdentity | undefined>;
  /**
   * True if another log's file exists at the path `name`. Always false for PostgreSQL, where this cannot be checked.
   */
  isOtherAt(name: string): boolean;
  /** Warnings for the operator about settings of the log's place that protect less than they seem to. */
  warnings(): Promise<readonly string[]>;
  /** Opens the log, or creates it. Throws what the store throws. */
  open(options?: OpenStoreOptions): Promise<LogStore>;
  /** Returns true if the log is a copy that was made by other means than reachlog's, or was set back to one. */
  isElsewhere(): Promise<boolean>;
  /**
   * Makes the log continue as a restored one; `copy` does so only if {@link StorePlace.isElsewhere} is true. `holder`:
   * how others see the caller. Throws what the store throws; `operator` also a ServiceError (busy) while a service has
   * the log.
   */
  beginEpoch(begunAs: "copy" | "operator", holder: string): Promise<void>;
  /**
   * Sentences for the operator on copies of the log that a start cannot notice at this place, and how to change that.
   */
  unprotected(): Promise<readonly string[]>;
  /**
   * Creates the log from events that another one has recorded, all or nothing. Throws what the store throws, and a
   * ServiceError (busy) while a service has a log there.
   */
  import(events: AsyncIterable<Recorded<NewEvent>>): Promise<Head>;
  /**
   * Frees the space of archived events. `holder` names the process in the lease under which this happens. Returns a
   * sentence for the operator if the space could not be freed.
   */
  compact(holder: string): Promise<string | undefined>;
}

export interface OpenStoreOptions {
  /** Codec of events; default: events are read as they are stored. */
  readonly codec?: Codec<Event>;
  /** Module that transforms events on the writer thread, for work that the codec leaves to it, such as encryption. */
  readonly writerTransform?: URL;
  /**
   * True to write on a separate thread, so that commits do not block the caller's thread. Default: false, because most
   * commands end sooner without one.
   */
  readonly writerThread?: boolean | undefined;
  /** Clock by which events are recorded; default: the engine's time. */
  readonly clock?: Clock | undefined;
  /**
   * Description, for other processes, of the service that opens a log in a file as its only owner. A log on a server
   * may have any number of services.
   */
  readonly owner?: string | undefined;
  /** The store calls this after each transaction of appends. */
  readonly onCommit?: ((commit: Commit) => void) | undefined;
}

export function sqliteStore(
  file: string,
  segments: SegmentStorage = createSegmentFolder(logFiles(file).segments),
): StorePlace {
  const log = maintainSqliteLog(file);
  return {
    name: file,
    isThere: async () => existsSync(file),
    identify: async () => (existsSync(file) ? log.identify() : undefined),
    isOtherAt: (other) => existsSync(other) && !isSameFile(other, file),
    warnings: async () => [],
    // Nothing in a copy of all files shows that it is a copy, so an operator has to report it.
    isElsewhere: async () => false,
    beginEpoch: async (_, holder) => log.beginEpoch(holder),
    unprotected: async () => [],
    import: (events) => importSqliteLog({ file, events }),
    async compact(holder) {
      try {
        log.compact(holder);
        return undefined;
      } catch (fault) {
        if (!isStoreError(fault, "owned")) throw fault;
        return `${file} keeps its size while a service uses it, and reuses the space; archive once with the service stopped`;
      }
    },
    open({ owner, writerThread = false, ...options } = {}) {
      mkdirSync(dirname(file), { recursive: true });
      const holder = owner === undefined ? undefined : { holder: owner };
      return openSqliteStore<Event>({
        file,
        segments,
        ...omitUndefined({ ...options, writerThread, owner: holder }),
      });
    },
  };
}

function isSameFile(one: string, other: string): boolean {
  const [{ dev, ino }, its] = [statSync(one), statSync(other, { throwIfNoEntry: false })];
  return dev === its?.dev && ino === its.ino;
}

/** Place of a log in a database on a server. `shown`: its name in messages, without its password. */
export interface PostgresPlace {
  readonly url: Secret;
  readonly shown: string;
  /** Storage of archived events; undefined if none are archived. */
  readonly segments?: SegmentStorage | undefined;
}

export function postgresStore({ url, shown, segments }: PostgresPlace): StorePlace {
  const log = { url: url.reveal(), schema: SCHEMA };
  const isThere = async (): Promise<boolean> => {
    const rows = await reachServer(shown, () => askOnce<{ there: boolean }>(url, IS_THERE));
    return rows[0]?.there === true;
  };
  const open = ({ writerThread = false, ...options }: OpenStoreOptions = {}): Promise<LogStore> => {
    const given = omitUndefined({ segments, writerThread, ...options });
    return reachServer(shown, () => openPostgresStore<Event>({ ...log, ...given }));
  };
  const refuseLiving = async (): Promise<void> => {
    if (!(await isThere())) return;
    await using store = await open();
    await refuseServed(store);
  };
  return {
    name: shown,
    isThere,
    identify: () => reachServer(shown, () => identifyPostgresLog(log)),
    // A log on a server needs no check for another log at the former location. A log that is found on another server
    // begins a new epoch, by which the vault and keys distinguish it from the original.
    isOtherAt: () => false,
    async warnings() {
      const off = await reachServer(shown, () => askOnce<{ name: keyof typeof LOSES }>(url, ARE_OFF));
      return off.map(({ name }) => `${shown}: ${name} is off there: ${LOSES[name]}`);
    },
    isElsewhere: () => reachServer(shown, () => isPostgresLogElsewhere(log)),
    async beginEpoch(begunAs) {
      // If an operator begins the epoch, no service may use the log. If a service begins it because the log is a copy
      // (`copy`), another instance may already serve the log, because several may start on a copy at the same time.
      if (begunAs === "operator") await refuseLiving();
      await reachServer(shown, () => beginPostgresEpoch(log, begunAs));
    },
    async unprotected() {
      const { unknown, owner } = await reachServer(shown, () => knownPostgresPlace(log));
      return unknown.map((part) => `${shown}: a start does not notice ${UNNOTICED[part](owner)}`);
    },
    async import(events) {
      await refuseLiving();
      return reachServer(shown, () => importPostgresLog({ ...log, events }));
    },
    compact: async () => undefined,
    open,
  };
}

/**
 * Restores a copy of a log, which is a file, to where the server has its log. All or nothing; throws what the store
 * throws.
 */
export async function restoreToServer(
  { url, shown }: PostgresPlace,
  file: string,
  onProgress: (copied: number) => void,
): Promise<void> {
  await reachServer(shown, () => restorePostgresLog({ url: url.reveal(), schema: SCHEMA, file, onProgress }));
}

const SCHEMA = "eventstore";

/**
 * Sentences on copies of a log that a start cannot notice, if the database role may not call a function that would show
 * them.
 */
const UNNOTICED: Readonly<Record<PlaceKnown["unknown"][number], (owner: string) => string>> = {
  server: (owner) => `a copy on another server: GRANT EXECUTE ON FUNCTION pg_control_system() TO ${owner}`,
  timeline: (owner) =>
    `a recovery to a point in time: GRANT EXECUTE ON FUNCTION pg_current_wal_lsn(), pg_walfile_name(pg_lsn) TO ${owner}`,
  files: (owner) =>
    `a base backup that was put back without a recovery target: GRANT EXECUTE ON FUNCTION pg_stat_file(text) TO ${owner}`,
};

/** Settings of a database server that must be on, each with the harm that a crash may do while it is off. */
const LOSES = {
  fsync: "when its machine fails, what was acknowledged may be lost, and the database with it",
  full_page_writes: "when its machine fails, the database may be damaged",
  synchronous_commit: "when it fails, what was acknowledged last may be lost",
} as const;

const ARE_OFF = `SELECT name FROM pg_settings WHERE setting = 'off' AND name IN ('${Object.keys(LOSES).join("', '")}')`;

const IS_THERE = `SELECT to_regclass('${SCHEMA}.info') IS NOT NULL AS there`;

/** Runs a query on a separate connection. */
async function askOnce<Row extends object>(url: Secret, query: string): Promise<readonly Row[]> {
  const database = openDatabase({ url: url.reveal(), connections: 1, name: "reachlog" });
  try {
    return await database.run((sql) => sql.unsafe<Row[]>(query));
  } finally {
    await database.close();
  }
}

/** Matches the SQL states of a server that refuses our login: unknown user, no such database, no right to it. */
const NOT_SERVED = /^(?:28|3D|42501)/;

/**
 * Makes the first call to a database server, and says why it failed. `shown`: the server's name in messages, without
 * its password. Throws a ServiceError (configuration, unavailable).
 */
export async function reachServer<Result>(shown: string, reach: () => Promise<Result>): Promise<Result> {
  try {
    return await reach();
  } catch (fault) {
    const cause = isStoreError(fault, "unavailable") ? fault.cause : fault;
    const reason = cause instanceof Error ? cause.message : String(cause);
    if (NOT_SERVED.test(sqlState(cause) ?? "")) {
      throw new ServiceError("configuration", `${shown} cannot be used: ${reason}`, { cause });
    }
    if (!isStoreError(fault, "unavailable") && !isLost(cause)) throw fault;
    throw new ServiceError("unavailable", `${shown} does not answer: ${reason}`, { cause });
  }
}
