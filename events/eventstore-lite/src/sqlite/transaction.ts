import type { DatabaseSync } from "node:sqlite";

/**
 * Begins and ends one transaction at a time, for work that is spread over several calls. For work in one function use
 * {@link createTransaction}.
 */
export interface Boundaries {
  /**
   * Begins a transaction and takes the write lock. A transaction that reads first and takes the lock later can fail
   * with SQLITE_BUSY_SNAPSHOT.
   */
  begin(): void;
  /** Commits the transaction, and returns after the fsync. */
  commit(): void;
  rollback(): void;
}

export function createBoundaries(db: DatabaseSync): Boundaries {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  return {
    begin: () => void begin.run(),
    commit: () => void commit.run(),
    rollback() {
      // SQLite rolls back by itself after some errors and not after others.
      if (db.isTransaction) db.exec("ROLLBACK");
    },
  };
}

/** Runs `work` in one transaction that holds the write lock from its first statement, and returns after the fsync. */
export function createTransaction({ begin, commit, rollback }: Boundaries): <Result>(work: () => Result) => Result {
  return (work) => {
    begin();
    try {
      const result = work();
      commit();
      return result;
    } catch (error) {
      rollback();
      throw error;
    }
  };
}
