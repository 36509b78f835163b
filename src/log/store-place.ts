import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import {
  importPostgresLog,
  importSqliteLog,
  openPostgresStore,
  openSqliteStore,
  restorePostgresLog,
  type Codec,
  type Commit,
  type EventStore,
  type Head,
  type ImportOptions,
} from "eventstore-lite";
import { openDatabase } from "eventstore-lite/postgres";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import type { Secret } from "../platform/secret.ts";
import { reachServer } from "./reach-server.ts";

/** Where a log is kept, or comes to be. */
export interface StorePlace {
  /** As errors name it. */
  readonly name: string;
  isThere(): Promise<boolean>;
  /** What there keeps less than it says, as sentences for the operator. */
  warnings(): Promise<readonly string[]>;
  /** Opens the log, or makes it. Throws what the store throws. */
  open(options?: OpenStoreOptions): Promise<EventStore<Event>>;
  /** Makes the log of events that another one has recorded, all or nothing. Throws what the store throws. */
  import(events: ImportOptions["events"]): Promise<Head>;
}

export interface OpenStoreOptions {
  /** Default: events are read as they are stored. */
  readonly codec?: Codec<Event>;
  /** What finishes, on the writer's thread, what the codec left unfinished. */
  readonly finish?: URL;
  /** Default: time as the engine has it. */
  readonly clock?: Clock | undefined;
  /** Opens the log as the one service of it, described to others by that text; a server's log has any number of services. */
  readonly owner?: string | undefined;
  /** Called after each transaction of appends. */
  readonly onCommit?: ((commit: Commit) => void) | undefined;
}

export function sqliteStore(file: string): StorePlace {
  return {
    name: file,
    isThere: async () => existsSync(file),
    warnings: async () => [],
    import: (events) => importSqliteLog({ file, events }),
    open({ owner, ...options } = {}) {
      mkdirSync(dirname(file), { recursive: true });
      return openSqliteStore<Event>({
        file,
        ...given(options),
        ...(owner === undefined ? {} : { owner: { holder: owner } }),
      });
    },
  };
}

/** A database on a server; `shown`: how messages call it, without its password. */
export interface PostgresPlace {
  readonly url: Secret;
  readonly shown: string;
}

export function postgresStore({ url, shown }: PostgresPlace): StorePlace {
  return {
    name: shown,
    async isThere() {
      const rows = await reachServer(shown, () => askOnce<{ there: boolean }>(url, IS_THERE));
      return rows[0]?.there === true;
    },
    async warnings() {
      const off = await reachServer(shown, () => askOnce<{ name: keyof typeof LOSES }>(url, ARE_OFF));
      return off.map(({ name }) => `${shown}: ${name} is off there: ${LOSES[name]}`);
    },
    import: (events) => reachServer(shown, () => importPostgresLog({ url: url.reveal(), schema: SCHEMA, events })),
    open: (options = {}) =>
      reachServer(shown, () => openPostgresStore<Event>({ url: url.reveal(), schema: SCHEMA, ...given(options) })),
  };
}

/** Puts a copy of a log, which is a file, where the server has its log. All or nothing; throws what the store throws. */
export async function restoreToServer(
  { url, shown }: PostgresPlace,
  file: string,
  onProgress: (copied: number) => void,
): Promise<void> {
  await reachServer(shown, () => restorePostgresLog({ url: url.reveal(), schema: SCHEMA, file, onProgress }));
}

/** Where in its database the log is. */
const SCHEMA = "eventstore";

/** Settings of a server without which what was acknowledged may not be there after a crash. */
const LOSES = {
  fsync: "when its machine fails, what was acknowledged may be lost, and the database with it",
  full_page_writes: "when its machine fails, the database may be damaged",
  synchronous_commit: "when it fails, what was acknowledged last may be lost",
} as const;

const ARE_OFF = `SELECT name FROM pg_settings WHERE setting = 'off' AND name IN ('${Object.keys(LOSES).join("', '")}')`;

const IS_THERE = `SELECT to_regclass('${SCHEMA}.info') IS NOT NULL AS there`;

/** On a connection for this question alone. */
async function askOnce<Row extends object>(url: Secret, query: string): Promise<readonly Row[]> {
  const database = openDatabase({ url: url.reveal(), connections: 1, name: "reachlog" });
  try {
    return await database.run((sql) => sql.unsafe<Row[]>(query));
  } finally {
    await database.close();
  }
}

/** An engine has a default for an option that is left out, and none for one that is undefined. */
function given({ codec, finish, clock, onCommit }: OpenStoreOptions) {
  return {
    ...(codec === undefined ? {} : { codec }),
    ...(finish === undefined ? {} : { finish }),
    ...(clock === undefined ? {} : { clock }),
    ...(onCommit === undefined ? {} : { onCommit }),
  };
}
