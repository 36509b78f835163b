import { readFileSync } from "node:fs";
import type { Epoch } from "../event-store-interface.ts";
import { StoreUnusable } from "../errors.ts";
import { type Database, type DatabaseSql, openDatabase, type TransactionSql } from "./database.ts";
import { isForgotten, readerError } from "./classify-errors.ts";
import { migrate, type Migrations } from "./migrate.ts";
import { shareLog } from "./lock-out-restores.ts";

export const COMPONENT = "eventstore-lite";

/** Returns the SQL scripts that each bring a log to the next format. A released script is never changed. */
export function migrations(): Migrations {
  return [readFileSync(new URL("./log-1.sql", import.meta.url), "utf8")];
}

/**
 * Oldest PostgreSQL version that can hold a log: 14, the first that has `string_to_table` and parses the bodies of
 * functions when they are created.
 */
const SERVER_VERSION_MIN = 140_000;

export interface PreparedLog {
  readonly storeId: string;
  /** Id of the log's current epoch, which is the last of `epochs`. */
  readonly epoch: string;
  readonly epochs: readonly Epoch[];
}

/**
 * Creates the tables of a log, or brings them up to date. Throws {@link StoreUnusable} for a server that cannot hold
 * one, {@link StoreUnavailable} if it does not answer, {@link StoreBusy} while a log is restored or imported there.
 */
export async function prepareSchema(url: string, schema: string): Promise<PreparedLog> {
  const database = openDatabase({ url, connections: 1, name: "eventstore-lite" });
  try {
    await requireServer(database);
    await requirePreparedStatements(database, url);
    const beginning = (sql: TransactionSql): Promise<void> => shareLog(sql, schema);
    await migrate(database, { schema, component: COMPONENT, migrations: migrations(), beginning });
    return await database.run((sql) =>
      sql.begin(async (transaction) => {
        await beginning(transaction);
        return await readLog(transaction, schema);
      }),
    );
  } catch (error) {
    throw readerError(error);
  } finally {
    await database.close();
  }
}

async function requireServer(database: Database): Promise<void> {
  const [server] = await database.run(
    (sql) => sql<{ version: number; encoding: string }[]>`
      SELECT current_setting('server_version_num')::integer AS version, current_setting('server_encoding') AS encoding`,
  );
  if (server!.version < SERVER_VERSION_MIN) throw new StoreUnusable("the server is too old: PostgreSQL 14 is needed");
  // The hash chain is computed over UTF-8 bytes, so the server must store texts in UTF-8.
  if (server!.encoding !== "UTF8") throw new StoreUnusable(`the database's encoding is ${server!.encoding}, not UTF8`);
}

/**
 * Maximum number of attempts to get another connection from a pool. The first attempt mostly succeeds, because a pool
 * gives out the connection that was returned last.
 */
const POOL_TRIES_MAX = 10;

/**
 * Throws {@link StoreUnusable} if a pool moves a client between connections and forgets its prepared statements. Tries
 * it with two clients: the second takes the connection on which the first has prepared a statement.
 */
async function requirePreparedStatements(database: Database, url: string): Promise<void> {
  const other = openDatabase({ url, connections: 1, name: "eventstore-lite" });
  const ask = (sql: DatabaseSql | TransactionSql) => sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
  try {
    for (let tried = 0; tried < POOL_TRIES_MAX; tried++) {
      const { state, 0: before } = await database.run(ask);
      // The driver knows the id that the server process had when the connection began; a pool makes up that id. If the
      // query returns the same id there is no pool, so prepared statements work.
      if (state.pid === before!.pid) return;
      await other.run(ask);
      await database.run(ask);
      await other.run((sql) =>
        sql.begin(async (held) => {
          await ask(held);
          await database.run((mine) => mine.begin(ask));
        }),
      );
    }
  } catch (error) {
    if (!isForgotten(error)) throw error;
    throw new StoreUnusable(
      "the pool in front of the server forgets prepared statements: set max_prepared_statements above 0, which pgbouncer knows from 1.21 on, or pool_mode = session",
    );
  } finally {
    await other.close();
  }
}

async function readLog(sql: TransactionSql, schema: string): Promise<PreparedLog> {
  await sql`SELECT ${sql(schema)}.forget_batches()`;
  const [info] = await sql<{ store: string }[]>`SELECT store FROM ${sql(schema)}.info`;
  const epochs = await sql<Epoch[]>`
    SELECT id, after, begun_as AS "begunAs" FROM ${sql(schema)}.epochs ORDER BY number`;
  return { storeId: info!.store, epoch: epochs.at(-1)!.id, epochs };
}
