import type { Operation, Reply } from "../append/messages.ts";
import type { Database, DatabaseSql } from "./database.ts";
import { isUnanswered, NotConnected } from "./errors.ts";

/** By which clock leases expire: that of whoever asks, or the database's. */
export type NowOf = (nowMs: number) => number | null;

type Asked = Exclude<Operation, { kind: "close" }>;

interface LeaseRow {
  readonly token: number;
  readonly expires_at: number;
}

/** What changes snapshots and leases. Done twice it is done once, so what was not answered is simply asked again. */
export async function perform(database: Database, schema: string, operation: Asked, nowOf: NowOf): Promise<Reply> {
  const ask = () => database.run((sql) => queryOf(sql, schema, operation, nowOf));
  const [row] = await ask().catch((error: unknown) => {
    if (isUnanswered(error) && !(error instanceof NotConnected)) return ask();
    throw error;
  });
  if (operation.kind !== "acquireLease" || row === undefined) return { kind: "done" };
  const { name, holder } = operation;
  return { kind: "done", lease: { name, holder, token: row.token, expiresAt: new Date(row.expires_at) } };
}

function queryOf(sql: DatabaseSql, schema: string, operation: Asked, nowOf: NowOf) {
  const log = sql(schema);
  switch (operation.kind) {
    case "saveSnapshot": {
      const { version, position, state } = operation.snapshot;
      return sql<LeaseRow[]>`SELECT ${log}.save_snapshot(${lines(operation.names)}, ${version}, ${position}, ${state})`;
    }
    case "removeSnapshots":
      return sql<LeaseRow[]>`SELECT ${log}.remove_snapshots(${lines(operation.names)})`;
    case "acquireLease": {
      const { name, holder, ttlMs, steal, nowMs } = operation;
      return sql<
        LeaseRow[]
      >`SELECT * FROM ${log}.acquire_lease(${name}, ${holder}, ${ttlMs}, ${steal}, ${nowOf(nowMs)})`;
    }
    default:
      return sql<LeaseRow[]>`SELECT ${log}.release_lease(${operation.name}, ${operation.token})`;
  }
}

function lines(names: readonly string[]): string {
  return names.join("\n");
}
