import { setTimeout as delay } from "node:timers/promises";
import type { BatchAnswer } from "./transform-and-settle-batch.ts";
import type { Database } from "./database.ts";

/**
 * Time in ms after which a connection that does not answer how a batch ended is dropped. The next attempt asks over
 * another connection.
 */
const RESOLVE_MS_MAX = 1_000;
/** Pause between two attempts to find out how a batch ended. */
const RESOLVE_PAUSE_MS = 50;

/** Answer to a batch of appends; undefined if the batch is not in the log, and never will be. */
export type Outcome = BatchAnswer | undefined;

/** Finds out how the batch that was sent last ended, if its answer is lost. */
export interface Doubt {
  /** Asks how batch `seq` ended, until the database answers. Throws once `closing` aborts. */
  resolve(seq: number): Promise<Outcome>;
}

export interface DoubtOptions {
  readonly database: Database;
  readonly schema: string;
  /** Called with a reason each time the database does not say how a batch ended, and with undefined once it does. */
  readonly onAway: (cause: string | undefined) => void;
  readonly closing: AbortSignal;
}

export function createDoubt(writer: string, { database, schema, onAway, closing }: DoubtOptions): Doubt {
  async function ask(seq: number): Promise<Outcome> {
    const [row] = await database.run(
      (sql) => sql<BatchAnswer[]>`SELECT * FROM ${sql(schema)}.resolve(${writer}, ${seq})`,
      RESOLVE_MS_MAX,
    );
    return row?.time_ms === null ? undefined : row;
  }

  return {
    async resolve(seq) {
      for (let isAway = false; ;) {
        try {
          const outcome = await ask(seq);
          if (isAway) onAway(undefined);
          return outcome;
        } catch (error) {
          if (closing.aborted) throw error;
          if (!isAway) onAway(error instanceof Error ? error.message : String(error));
          isAway = true;
        }
        await delay(RESOLVE_PAUSE_MS, undefined, { signal: closing }).catch(() => undefined);
      }
    },
  };
}
