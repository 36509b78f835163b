import type { DatabaseSync } from "node:sqlite";

/**
 * Runs `work` in one transaction that holds the write lock from its first statement: a transaction that
 * reads first and upgrades later can fail with SQLITE_BUSY_SNAPSHOT. Returns after COMMIT, thus after the fsync.
 */
export function createTransaction(db: DatabaseSync): <Result>(work: () => Result) => Result {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  return (work) => {
    begin.run();
    try {
      const result = work();
      commit.run();
      return result;
    } catch (error) {
      // SQLite rolls back by itself after some errors and not after others.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  };
}
