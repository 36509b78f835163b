import { randomUUID } from "node:crypto";
import { createCheckImported } from "../check-imported-events.ts";
import { TargetTaken } from "../errors.ts";
import { DEFAULT_LIMITS, type Limits } from "../limits.ts";
import type { Head, NewEvent, Recorded } from "../event-store-interface.ts";
import { type Database, openDatabase, type TransactionSql } from "./database.ts";
import { readerError } from "./classify-errors.ts";
import { readHead } from "./read-heads-snapshots-leases.ts";
import { migrate } from "./migrate.ts";
import { takeLog } from "./lock-out-restores.ts";
import { openReader, quoted } from "./database-reader.ts";
import { COMPONENT, migrations } from "./prepare-schema.ts";

export interface PostgresImportOptions {
  /**
   * URL of the database, in the form that `openPostgresStore` takes; its role must have the right to create schemas.
   */
  readonly url: string;
  /** The place of the new log: it must be unused, or hold a log without events. */
  readonly schema: string;
  /**
   * Events as `readStored` yields them, from position 1 on without a gap; they keep positions, times and hashes. Each
   * is checked, as if from an unknown source. Idempotency keys, snapshots and leases are not imported.
   */
  readonly events: AsyncIterable<Recorded<NewEvent>>;
  readonly limits?: Partial<Limits>;
}

/** Number of events that one query inserts. */
const CHUNK_EVENTS = 1_000;

/** Time limit of one insert: a thousand of the largest events on a slow disk take longer than a service may wait. */
const INSERT_MS_MAX = 600_000;

/** Time limit of an import; thousands of millions of events take less. */
const CREATE_MS_MAX = 24 * 60 * 60 * 1_000;

/**
 * Time limit in ms for deleting the tables of a failed import, which may have to wait until another program's long query
 * ends.
 */
const RENAME_MS_MAX = 60_000;

/**
 * Creates a log with a new id from events that another log recorded; returns its head. All or nothing: it gets its name
 * once the last event is checked. Throws {@link ImportRefused}, {@link TargetTaken}, and what `events` throws.
 */
export async function importPostgresLog({ events, ...target }: PostgresImportOptions): Promise<Head> {
  return createLog(target, events, async (database, schema) => {
    await database.run((sql) => sql`UPDATE ${sql(schema)}.epochs SET begun_as = 'import'`);
  });
}

/**
 * Creates a log from events, all or nothing: it has a temporary name until it is complete. Before it is renamed,
 * `complete` adds what events do not hold, such as idempotency keys and epochs.
 */
export async function createLog(
  { url, schema, limits }: Omit<PostgresImportOptions, "events">,
  events: AsyncIterable<Recorded<NewEvent>>,
  complete: (database: Database, schema: string) => Promise<void>,
): Promise<Head> {
  const partial = `${schema} import ${randomUUID()}`;
  const locking = openDatabase({ url, connections: 1, name: "eventstore-lite import lock" });
  const database = openDatabase({ url, connections: 1, name: "eventstore-lite import", statementMs: INSERT_MS_MAX });
  const create = async (transaction: TransactionSql): Promise<void> => {
    await takeLog(transaction, schema);
    await requireUnused(transaction, schema);
    await migrate(database, { schema: partial, component: COMPONENT, migrations: migrations() });
    await fill(database, partial, events, { ...DEFAULT_LIMITS, ...limits });
    await complete(database, partial);
    // Uses the transaction that holds the lock, so that nothing is renamed if that transaction's connection is lost.
    await rename(transaction, partial, schema);
  };
  try {
    await locking.run((sql) => sql.begin(create), CREATE_MS_MAX);
  } catch (error) {
    await database.run((sql) => sql`DROP SCHEMA IF EXISTS ${sql(partial)} CASCADE`, RENAME_MS_MAX).catch(() => {});
    throw readerError(error);
  } finally {
    await Promise.all([locking.close(), database.close()]);
  }
  const reader = openReader(url, schema);
  try {
    return await readHead(reader);
  } finally {
    await reader.close();
  }
}

async function fill(
  database: Database,
  schema: string,
  events: AsyncIterable<Recorded<NewEvent>>,
  { eventBytes }: Limits,
): Promise<void> {
  const check = createCheckImported(eventBytes);
  const insert = async (chunk: readonly Recorded<NewEvent>[]): Promise<void> => {
    const versions = await versionsOf(database, schema, new Set(chunk.map(({ stream }) => stream)));
    const rows = chunk.map((event) => {
      const { timeMs, data, meta } = check(event, (stream) => versions.get(stream) ?? 0);
      const { position, version, stream, type, id, hash } = event;
      versions.set(stream, version);
      return { position, version, time: timeMs, stream, type, id, data, meta, hash };
    });
    await database.run(
      (sql) => sql`
        INSERT INTO ${sql(schema)}.events (position, version, time, stream, type, id, data, meta, hash)
        SELECT position, version, time, stream, type, id, data, meta, decode(hash, 'hex')
        FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (
          position bigint, version bigint, time bigint, stream text, type text, id text, data text, meta text, hash text
        )`,
    );
  };
  let chunk: Recorded<NewEvent>[] = [];
  for await (const event of events) {
    chunk.push(event);
    if (chunk.length < CHUNK_EVENTS) continue;
    await insert(chunk);
    chunk = [];
  }
  if (chunk.length > 0) await insert(chunk);
}

/** Returns the versions of streams in a new log; 0 for a stream without events. */
async function versionsOf(
  database: Database,
  schema: string,
  streams: ReadonlySet<string>,
): Promise<Map<string, number>> {
  const found = await database.run(
    (sql) => sql<{ stream: string; version: number | null }[]>`
      SELECT stream, (SELECT max(version) FROM ${sql(schema)}.events e WHERE e.stream = s.stream) AS version
      FROM json_array_elements_text(${JSON.stringify([...streams])}::text::json) AS s (stream)`,
  );
  return new Map(found.map(({ stream, version }) => [stream, version ?? 0]));
}

/** Throws {@link TargetTaken} unless the schema does not exist, or holds only a log without events. */
async function requireUnused(sql: TransactionSql, schema: string): Promise<void> {
  const [place] = await sql`SELECT FROM pg_namespace WHERE nspname = ${schema}`;
  if (place === undefined) return;
  const tables =
    await sql`SELECT FROM pg_tables WHERE schemaname = ${schema} AND tablename IN ('migrations', 'events')`;
  if (tables.length !== 2) throw new TargetTaken(`the schema ${schema} holds something else than a log`);
  const [other] = await sql`SELECT FROM ${sql(schema)}.migrations WHERE component <> ${COMPONENT}`;
  const [event] = await sql`SELECT FROM ${sql(schema)}.events LIMIT 1`;
  if (other !== undefined) throw new TargetTaken(`the schema ${schema} holds more than a log`);
  if (event !== undefined) throw new TargetTaken(`the log in ${schema} holds events: only a new log is imported into`);
}

async function rename(sql: TransactionSql, partial: string, schema: string): Promise<void> {
  // Locks the log that is replaced, if there is one, so that no other process appends to it between the check and the
  // end of this transaction.
  const [turn] = await sql`SELECT to_regclass(${`${quoted(schema)}.turn`}) AS name`;
  if (turn!["name"] !== null) await sql`LOCK ${sql(schema)}.turn`;
  await requireUnused(sql, schema);
  const rights = await rightsOn(sql, schema, partial);
  await sql`DROP SCHEMA IF EXISTS ${sql(schema)} CASCADE`;
  for (const { statement } of rights) await sql.unsafe(statement);
  await sql`ALTER SCHEMA ${sql(partial)} RENAME TO ${sql(schema)}`;
  // The functions still look for the log's tables under its former name.
  const functions = await sql<{ signature: string }[]>`
    SELECT oid::regprocedure::text AS signature FROM pg_proc WHERE pronamespace = ${quoted(schema)}::regnamespace
      AND proconfig IS NOT NULL`;
  for (const { signature } of functions) {
    await sql.unsafe(`ALTER FUNCTION ${signature} SET search_path TO ${quoted(schema)}, pg_temp`);
  }
}

/**
 * Returns SQL statements that give each role the same rights on the new log as it had on the replaced one. Without
 * these statements, PostgreSQL would let every role execute the new log's functions.
 */
function rightsOn(sql: TransactionSql, before: string, after: string) {
  return sql<{ statement: string }[]>`
    WITH place AS (
      SELECT old.oid AS old, old.nspacl AS old_acl, new.oid AS new, new.nspacl AS new_acl, new.nspowner AS owner
      FROM pg_namespace old, pg_namespace new WHERE old.nspname = ${before} AND new.nspname = ${after}
    ), objects AS (
      SELECT format('SCHEMA %I', ${after}::text) AS object, owner, old_acl, new_acl FROM place
      UNION ALL
      SELECT 'TABLE ' || new.oid::regclass, owner, old.relacl, new.relacl
      FROM place JOIN pg_class old ON old.relnamespace = place.old
        JOIN pg_class new ON new.relnamespace = place.new AND new.relname = old.relname
      WHERE old.relkind = 'r'
      UNION ALL
      SELECT 'ROUTINE ' || new.oid::regprocedure, owner,
        coalesce(old.proacl, acldefault('f', owner)), coalesce(new.proacl, acldefault('f', owner))
      FROM place JOIN pg_proc old ON old.pronamespace = place.old
        JOIN pg_proc new ON new.pronamespace = place.new AND new.proname = old.proname
          AND new.proargtypes = old.proargtypes
    ), wanted AS (
      SELECT object, grantee, privilege_type, is_grantable FROM objects, aclexplode(old_acl) WHERE grantee <> owner
    ), given AS (
      SELECT object, grantee, privilege_type, is_grantable FROM objects, aclexplode(new_acl) WHERE grantee <> owner
    ), changes AS (
      SELECT 'REVOKE %s ON %s FROM %s' AS change, * FROM (TABLE given EXCEPT TABLE wanted) excess
      UNION ALL
      SELECT 'GRANT %s ON %s TO %s' || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END, *
      FROM (TABLE wanted EXCEPT TABLE given) missing
    )
    SELECT format(change, privilege_type, object,
      CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END) AS statement
    FROM changes ORDER BY change DESC`;
}
