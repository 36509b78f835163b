import type { DatabaseSync } from "node:sqlite";

/** All of `work`, or nothing of it; nobody else writes meanwhile. */
export function transact<T>(database: DatabaseSync, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (fault) {
    // A full disk has ended it already.
    if (database.isTransaction) database.exec("ROLLBACK");
    throw fault;
  }
}
