import { StoreUnusable } from "../errors.ts";
import type { Database, DatabaseSql, TransactionSql } from "./database.ts";
import { isMissing } from "./classify-errors.ts";

/** SQL statements that update the tables, numbered from 1. Each is applied once, in this order. */
export type Migrations = readonly string[];

export interface MigrateOptions {
  /** Schema of the tables; created if it does not exist. Only this schema is on the search path of the migrations. */
  readonly schema: string;
  /** Name of the program part that owns the tables; several parts may share a schema. */
  readonly component: string;
  readonly migrations: Migrations;
  /** The migration calls this at the beginning of its transaction; if this throws, nothing changes. */
  readonly beginning?: (sql: TransactionSql) => Promise<void>;
}

/**
 * Updates the tables of a component in one transaction; other processes wait until it ends. If nothing has to be done,
 * it needs no rights to change tables. Throws {@link StoreUnusable} if the tables are of a newer version.
 */
export async function migrate(
  database: Database,
  { schema, component, migrations, beginning }: MigrateOptions,
): Promise<void> {
  const known = migrations.length;
  if ((await database.run((sql) => appliedTo(sql, schema, component, known))) === known) return;
  const apply = async (transaction: TransactionSql): Promise<void> => {
    await beginning?.(transaction);
    await transaction`SET LOCAL statement_timeout = 0`;
    await transaction`SET LOCAL search_path TO ${transaction(schema)}, pg_temp`;
    await transaction`SELECT pg_advisory_xact_lock(hashtext(${`eventstore-lite ${schema}`}))`;
    await transaction`CREATE SCHEMA IF NOT EXISTS ${transaction(schema)}`;
    await transaction.unsafe(VERSIONS);
    const applied = await appliedTo(transaction, schema, component, known);
    for (const [index, migration] of migrations.entries()) {
      if (index < applied) continue;
      await transaction.unsafe(migration);
      await transaction`INSERT INTO migrations (component, number) VALUES (${component}, ${index + 1})`;
    }
  };
  await database.run((sql) => sql.begin(apply), MIGRATION_MS_MAX);
}

/** Time limit of a migration, which may rewrite a large table. */
const MIGRATION_MS_MAX = 24 * 60 * 60 * 1_000;

const VERSIONS = `
  CREATE TABLE IF NOT EXISTS migrations (
    component text NOT NULL,
    number integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (component, number)
  )`;

async function appliedTo(
  sql: DatabaseSql | TransactionSql,
  schema: string,
  component: string,
  known: number,
): Promise<number> {
  const applied = await sql<{ number: number | null }[]>`
    SELECT max(number) AS number FROM ${sql(schema)}.migrations WHERE component = ${component}`.catch(
    (error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    },
  );
  const number = applied[0]?.number ?? 0;
  if (number > known) {
    throw new StoreUnusable(`${component} has format ${number}; this program knows formats up to ${known}`);
  }
  return number;
}
