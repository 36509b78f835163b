import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { openPostgresStore, openSqliteStore, type Codec, type Commit, type EventStore } from "eventstore-lite";
import { openDatabase } from "eventstore-lite/postgres";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import type { Secret } from "../platform/secret.ts";
import { reaching } from "./reaching.ts";

/** Where a log is kept, or comes to be. */
export interface StorePlace {
  /** As errors name it. */
  readonly name: string;
  isThere(): Promise<boolean>;
  /** Opens the log, or makes it. Throws what the store throws. */
  open(options?: OpenStoreOptions): Promise<EventStore<Event>>;
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
    isThere: () =>
      reaching(shown, async () => {
        const database = openDatabase({ url: url.reveal(), connections: 1, name: "reachlog" });
        try {
          const [row] = await database.run(
            (sql) => sql<{ there: boolean }[]>`SELECT to_regclass('eventstore.info') IS NOT NULL AS there`,
          );
          return row?.there === true;
        } finally {
          await database.close();
        }
      }),
    open: (options = {}) => reaching(shown, () => openPostgresStore<Event>({ url: url.reveal(), ...given(options) })),
  };
}

/** An engine takes an option that is left out for another one than one that is undefined. */
function given({ codec, finish, clock, onCommit }: OpenStoreOptions) {
  return {
    ...(codec === undefined ? {} : { codec }),
    ...(finish === undefined ? {} : { finish }),
    ...(clock === undefined ? {} : { clock }),
    ...(onCommit === undefined ? {} : { onCommit }),
  };
}
