import type { Operation, Reply } from "../append/writer-messages.ts";
import type { Database, DatabaseSql } from "./database.ts";
import { isUnanswered, NotConnected } from "./classify-errors.ts";

/** Returns the time by which leases expire: the caller's clock, or null for the database's clock. */
export type NowOf = (nowMs: number) => number | null;

type Asked = Exclude<Operation, { kind: "close" }>;

/**
 * A log, and the id of the epoch (the time between two restores, imports or copies) in which its writer opened it. The
 * log's SQL functions raise EL001 if the log is in another epoch by then.
 */
export interface OpenedEpoch {
  readonly database: Database;
  readonly schema: string;
  readonly epoch: string;
}

interface LeaseRow {
  readonly token: number;
  readonly expires_at: number;
}

/**
 * Changes snapshots, leases or the archive. Each change has the same effect if done twice, so an unanswered one is sent
 * again.
 */
export async function perform(
  { database, schema, epoch }: OpenedEpoch,
  operation: Asked,
  nowOf: NowOf,
): Promise<Reply> {
  const ask = () => database.run((sql) => queryOf(sql, { schema, epoch }, operation, nowOf));
  const [row] = await ask().catch((error: unknown) => {
    if (isUnanswered(error) && !(error instanceof NotConnected)) return ask();
    throw error;
  });
  if (operation.kind !== "acquireLease" || row === undefined) return { kind: "done" };
  const { name, holder } = operation;
  return { kind: "done", lease: { name, holder, token: row.token, expiresAt: new Date(row.expires_at) } };
}

function queryOf(sql: DatabaseSql, { schema, epoch }: Omit<OpenedEpoch, "database">, operation: Asked, nowOf: NowOf) {
  const log = sql(schema);
  switch (operation.kind) {
    case "saveSnapshot": {
      const { version, position, state } = operation.snapshot;
      return sql<
        LeaseRow[]
      >`SELECT ${log}.save_snapshot(${epoch}, ${lines(operation.names)}, ${version}, ${position}, ${state})`;
    }
    case "removeSnapshots":
      return sql<LeaseRow[]>`SELECT ${log}.remove_snapshots(${epoch}, ${lines(operation.names)})`;
    case "acquireLease": {
      const { name, holder, ttlMs, steal, nowMs } = operation;
      return sql<
        LeaseRow[]
      >`SELECT * FROM ${log}.acquire_lease(${epoch}, ${name}, ${holder}, ${ttlMs}, ${steal}, ${nowOf(nowMs)})`;
    }
    case "recordSegment":
      return sql<LeaseRow[]>`SELECT ${log}.record_segment(${epoch}, ${JSON.stringify(operation.file)}::text)`;
    case "recordKeys":
      return sql<
        LeaseRow[]
      >`SELECT ${log}.record_keys(${epoch}, ${operation.last}, ${JSON.stringify(operation.keys)}::text)`;
    default:
      return sql<LeaseRow[]>`SELECT ${log}.release_lease(${epoch}, ${operation.name}, ${operation.token})`;
  }
}

function lines(names: readonly string[]): string {
  return names.join("\n");
}
