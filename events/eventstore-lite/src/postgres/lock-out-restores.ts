import { StoreBusy } from "../errors.ts";
import type { TransactionSql } from "./database.ts";
import { sqlState } from "./classify-errors.ts";

const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Lock time-out of a restore. A store that is being opened holds the lock for milliseconds, another restore holds it
 * for long.
 */
const WAIT = "2s";

/**
 * Keeps restores and imports away from the place of a log until the transaction ends. Throws {@link StoreBusy} while
 * one runs. The lock belongs to the transaction, because a connection pool may give a session to other clients.
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
  // PostgreSQL must not end this transaction for being idle: it only holds the lock while another connection writes the
  // events. It has no snapshot, so it does not hinder vacuum.
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
