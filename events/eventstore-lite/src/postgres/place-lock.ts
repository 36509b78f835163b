import { StoreBusy } from "../errors.ts";
import type { TransactionSql } from "./database.ts";
import { sqlState } from "./errors.ts";

const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Lock time-out of a restore. A store that is being opened holds the lock for milliseconds, another restore holds it
 * for long.
 */
const WAIT = "2s";

/**
 * Keeps restores and imports away from the place of a log until the transaction ends. Throws {@link StoreBusy} while
 * one runs. Unlike a session's lock, a transaction's lock also holds behind a pool that shares connections.
 */
export async function shareLog(sql: TransactionSql, schema: string): Promise<void> {
  const [lock] = await sql<{ taken: boolean }[]>`
    SELECT pg_try_advisory_xact_lock_shared(hashtext(${nameOf(schema)})) AS taken`;
  if (!lock!.taken) throw refusal();
}

/**
 * Keeps stores, restores and imports away from the place of a log until the transaction ends, at the latest with its
 * connection. Throws {@link StoreBusy} during another restore or import.
 */
export async function takeLog(sql: TransactionSql, schema: string): Promise<void> {
  await sql`SELECT set_config('lock_timeout', ${WAIT}, true)`;
  // The transaction idles while events are written on another connection, and holds up no vacuum.
  await sql`SET LOCAL idle_in_transaction_session_timeout = 0`;
  try {
    await sql`SELECT pg_advisory_xact_lock(hashtext(${nameOf(schema)}))`;
  } catch (error) {
    throw sqlState(error) === LOCK_NOT_AVAILABLE ? refusal() : error;
  }
}

function nameOf(schema: string): string {
  return `eventstore-lite place ${schema}`;
}

function refusal(): StoreBusy {
  return new StoreBusy("a log is being restored or imported there: try again when that has ended");
}
