import { setTimeout as delay } from "node:timers/promises";
import type { BatchAnswer } from "./batch.ts";
import type { Database } from "./database.ts";

/** A connection that does not say what became of a batch for so long is given up, and another one asked. */
const RESOLVE_MS_MAX = 1_000;
/** Between two attempts to find out. */
const RESOLVE_PAUSE_MS = 50;
/** So long the callers of a batch wait to hear what became of it; then they hear that nobody knows yet. */
const DOUBT_MS_MAX = 10_000;

/** What became of a batch: its answer; undefined: it is not in the log, and never will be. */
export type Outcome = BatchAnswer | undefined;

/** Finds out what became of the batch that was sent last, when its answer is lost. */
export interface Doubt {
  /** Throws when the database does not tell in time: then it is asked again before the next batch. */
  resolve(seq: number): Promise<Outcome>;
  /** What is left from before, if anything. Throws while the database is away. */
  settle(): Promise<void>;
}

export function createDoubt(database: Database, schema: string, writer: string): Doubt {
  let unresolved: number | undefined;

  async function ask(seq: number): Promise<Outcome> {
    unresolved = seq;
    const [row] = await database.run(
      (sql) => sql<BatchAnswer[]>`SELECT * FROM ${sql(schema)}.resolve(${writer}, ${seq})`,
      RESOLVE_MS_MAX,
    );
    unresolved = undefined;
    return row?.time_ms === null ? undefined : row;
  }

  return {
    async settle() {
      if (unresolved !== undefined) await ask(unresolved);
    },
    async resolve(seq) {
      const endsAt = performance.now() + DOUBT_MS_MAX;
      for (;;) {
        try {
          return await ask(seq);
        } catch (error) {
          if (performance.now() >= endsAt) throw error;
        }
        await delay(RESOLVE_PAUSE_MS);
      }
    },
  };
}
