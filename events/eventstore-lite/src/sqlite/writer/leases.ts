import type { DatabaseSync } from "node:sqlite";
import type { Operation } from "../../append/writer-messages.ts";
import type { Lease } from "../../event-store-interface.ts";

type Acquire = Extract<Operation, { kind: "acquireLease" }>;

interface LeaseRow {
  readonly holder: string;
  readonly token: number;
  readonly expires_at: number;
  readonly ttl: number;
}

/**
 * A lease with more than this many times its duration left was taken before the clock was set back; its holder would
 * have renewed it since. Not 1, because clocks are set back by milliseconds all the time.
 */
const LEFT_MAX_TTLS = 2;

export function isRunning({ expires_at, ttl }: LeaseRow, nowMs: number): boolean {
  const leftMs = expires_at - nowMs;
  return leftMs > 0 && leftMs <= ttl * LEFT_MAX_TTLS;
}

/** The leases table. The caller calls each function inside a transaction. */
export interface LeaseTable {
  acquire(request: Acquire): Lease | undefined;
  release(name: string, token: number): void;
  /** True while the lease `name` has not expired and is still held with this token. */
  isHeld(name: string, token: number, nowMs: number): boolean;
}

export function createLeaseTable(db: DatabaseSync): LeaseTable {
  const select = db.prepare("SELECT holder, token, expires_at, ttl FROM leases WHERE name = ?");
  const upsert = db.prepare(
    `INSERT INTO leases (name, holder, token, expires_at, ttl) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET
     holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at, ttl = excluded.ttl`,
  );
  const expire = db.prepare("UPDATE leases SET expires_at = 0 WHERE name = ? AND token = ?");
  const find = (name: string) => select.get(name) as LeaseRow | undefined;

  return {
    acquire({ name, holder, ttlMs, steal, nowMs }) {
      const row = find(name);
      const held = row !== undefined && isRunning(row, nowMs);
      const renewing = row !== undefined && row.expires_at > nowMs && row.holder === holder;
      if (held && !renewing && !steal) return undefined;
      // If the lease has expired, even its previous holder gets a new token. Appends under the old token are then
      // refused, because they may rest on old state.
      const token = renewing ? row.token : (row?.token ?? 0) + 1;
      upsert.run(name, holder, token, nowMs + ttlMs, ttlMs);
      return { name, holder, token, expiresAt: new Date(nowMs + ttlMs) };
    },
    release(name, token) {
      expire.run(name, token);
    },
    isHeld(name, token, nowMs) {
      const row = find(name);
      return row !== undefined && row.token === token && row.expires_at > nowMs;
    },
  };
}
