import type { DatabaseSync, StatementSync } from "node:sqlite";
import { createBoundedCache } from "../../bounded-cache.ts";
import { StoreClosed } from "../../errors.ts";

/** Maximum number of statements kept prepared: the fixed ones, and one for each number of types in a query. */
const STATEMENTS_CACHED_MAX = 128;

type Row = Record<string, unknown>;
export type Parameter = string | number;

/** A read connection whose every statement finishes at once, so that no transaction stays open between chunks. */
export interface DatabaseReader {
  all(sql: string, ...parameters: Parameter[]): Row[];
  get(sql: string, ...parameters: Parameter[]): Row | undefined;
  close(): void;
}

/** Creates a reader of a database, which throws {@link StoreClosed} once it is closed. */
export function createDatabaseReader(db: DatabaseSync): DatabaseReader {
  const statements = createBoundedCache<string, StatementSync>(STATEMENTS_CACHED_MAX);

  function prepare(sql: string): StatementSync {
    if (!db.isOpen) throw new StoreClosed();
    const known = statements.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  return {
    all: (sql, ...parameters) => prepare(sql).all(...parameters),
    get: (sql, ...parameters) => prepare(sql).get(...parameters),
    close() {
      if (db.isOpen) db.close();
    },
  };
}
