import { GENESIS_HASH } from "../event-hash-chain.ts";
import { SnapshotAhead } from "../errors.ts";
import type { Head, Lease, Snapshot, SnapshotEntry, StreamHead } from "../event-store-interface.ts";
import type { Reader } from "./database-reader.ts";

const GENESIS = Buffer.from(GENESIS_HASH).toString("hex");

/** The log's last position; 0 if it is empty. */
export async function lastPosition(reader: Reader): Promise<number> {
  const row = await reader.get<{ position: number }>("SELECT position FROM log.events ORDER BY position DESC LIMIT 1");
  return row?.position ?? 0;
}

export async function readHead(reader: Reader): Promise<Head> {
  const row = await reader.get<{ position: number; time: number; hash: string }>(
    "SELECT position, time, encode(hash, 'hex') AS hash FROM log.events ORDER BY position DESC LIMIT 1",
  );
  if (!row) return { position: 0, hash: GENESIS, time: undefined };
  return { position: row.position, hash: row.hash, time: new Date(row.time).toISOString() };
}

/** The server's time, in ms since 1970. */
export async function readNow(reader: Reader): Promise<number> {
  const row = await reader.get<{ now: number }>("SELECT log.now_ms() AS now");
  return row!.now;
}

export async function readStreamHead(reader: Reader, stream: string): Promise<StreamHead> {
  const row = await reader.get<StreamHead>(
    "SELECT version, position FROM log.events WHERE stream = $1 ORDER BY version DESC LIMIT 1",
    stream,
  );
  const found = row ?? (await readArchivedHead(reader, stream));
  return { version: found?.version ?? 0, position: found?.position ?? 0 };
}

function readArchivedHead(reader: Reader, stream: string): Promise<StreamHead | undefined> {
  return reader.get(
    "SELECT version, position FROM log.archived_streams WHERE stream = $1 ORDER BY position DESC LIMIT 1",
    stream,
  );
}

/**
 * The stored hash of the event at a position, in hex. Position 0 has the hash from which the first event's hash is
 * computed.
 */
export async function readHashAt(reader: Reader, position: number): Promise<string | undefined> {
  const row = await reader.get<{ hash: string }>(
    "SELECT encode(hash, 'hex') AS hash FROM log.events WHERE position = $1",
    position,
  );
  return row?.hash ?? (position === 0 ? GENESIS : undefined);
}

/** Throws {@link SnapshotAhead} if the snapshot holds more than the log. */
export async function loadSnapshot(reader: Reader, name: string): Promise<Snapshot | undefined> {
  const row = await reader.get<Snapshot>("SELECT version, position, state FROM log.snapshots WHERE name = $1", name);
  if (!row) return undefined;
  const { version, position, state } = row;
  // The log's head is read after the snapshot, because a snapshot that was saved in between would seem to be ahead of
  // the log.
  const head = await lastPosition(reader);
  if (position > head) throw new SnapshotAhead(name, position, head);
  return { version, position, state };
}

/**
 * Lists the snapshots whose names begin with `prefix`. Names are ordered by their bytes, so that a prefix is a range of
 * names.
 */
export async function listSnapshots(reader: Reader, prefix: string): Promise<readonly SnapshotEntry[]> {
  const rows = await reader.all<SnapshotEntry>(
    `SELECT name, version, position, octet_length(state) AS bytes FROM log.snapshots
     WHERE name >= $1 AND name < $2 ORDER BY name`,
    prefix,
    `${prefix}\u{10ffff}`,
  );
  return rows.map(({ name, version, position, bytes }) => ({ name, version, position, bytes }));
}

/**
 * Lists the leases with one of these names that are held at the time `nowMs`; if it is undefined, at the time of the
 * server's clock.
 */
export async function listLeases(
  reader: Reader,
  names: readonly string[],
  nowMs: number | undefined,
): Promise<readonly Lease[]> {
  const rows = await reader.all<{ name: string; holder: string; token: number; expires_at: number }>(
    `SELECT name, holder, token, expires_at FROM log.leases, coalesce($1::bigint, log.now_ms()) AS now
     WHERE name IN (SELECT jsonb_array_elements_text($2::text::jsonb)) AND log.is_running(expires_at, ttl, now)
     ORDER BY name`,
    nowMs ?? null,
    JSON.stringify(names),
  );
  return rows.map(({ expires_at, ...lease }) => ({ ...lease, expiresAt: new Date(expires_at) }));
}
