import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { KeyRange } from "../segments/catalogue.ts";
import { endLongTurn } from "../next-turn.ts";
import type { StoredKey } from "../event-store-interface.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

/**
 * The hash of each idempotency key in a segment, and the segment's number, from 1 on: some 14 bytes instead of 150 for
 * the whole key. Two keys may have the same hash, so the whole key decides.
 */
export const ARCHIVED_KEYS = `
  CREATE TABLE archived_keys (
    hash INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    PRIMARY KEY (hash, segment)
  ) STRICT, WITHOUT ROWID;
`;

/**
 * SQLite stores a number of 48 bits without padding. With 100,000,000 archived keys, one new key in 2,800,000 has the
 * hash of an archived one.
 */
const HASH_BYTES = 6;

function hashKey(key: string): number {
  return hash("sha256", key, "buffer").readIntBE(0, HASH_BYTES);
}

const FIND = "SELECT segment FROM archived_keys WHERE hash = ?";

/** Returns the numbers of the segments that may hold an idempotency key. */
export function findKeySegments(reader: DatabaseReader, key: string): readonly number[] {
  return reader.all(FIND, hashKey(key)).map(({ segment }) => Number(segment));
}

export interface ArchivedKeys {
  /** Returns how many segments may hold an idempotency key. */
  count(key: string): number;
  /**
   * Replaces whole keys by their hashes, for the segment that ends at position `last`; runs inside a transaction. Skips
   * keys that the log does not hold whole with these same values.
   */
  record(last: number, keys: readonly StoredKey[]): void;
}

export function createArchivedKeys(db: DatabaseSync): ArchivedKeys {
  const find = db.prepare(FIND);
  const number = db.prepare("SELECT count(*) AS number FROM segments WHERE last <= ? HAVING max(last) = ?");
  const remove = db.prepare(
    "DELETE FROM idempotency_keys WHERE key = ? AND digest = ? AND first = ? AND last = ? AND version = ?",
  );
  const insert = db.prepare("INSERT OR IGNORE INTO archived_keys (hash, segment) VALUES (?, ?)");
  return {
    count: (key) => find.all(hashKey(key)).length,
    record(position, keys) {
      const segment = number.get(position, position)?.["number"];
      if (segment === undefined) return;
      for (const { key, digest, first, last, version } of keys) {
        if (remove.run(key, digest, first, last, version).changes > 0) insert.run(hashKey(key), Number(segment));
      }
    },
  };
}

/** Number of keys that one statement examines, which takes about a millisecond. */
const CHUNK_KEYS = 2_048;

/**
 * Yields the idempotency keys that the database holds whole, in their order. Scans all of them, because an index from
 * positions to keys would slow down each append.
 */
export async function* readWholeKeys(
  reader: DatabaseReader,
  { from, to }: KeyRange,
): AsyncGenerator<readonly StoredKey[], void, void> {
  for (let after = ""; ;) {
    const end = reader.get(
      `SELECT key FROM idempotency_keys WHERE key > ? ORDER BY key LIMIT 1 OFFSET ${CHUNK_KEYS - 1}`,
      after,
    )?.["key"] as string | undefined;
    const found = reader.all(
      `SELECT key, digest, first, last, version FROM idempotency_keys
       WHERE key > ? AND last BETWEEN ? AND ? ${end === undefined ? "" : "AND key <= ?"} ORDER BY key`,
      after,
      from,
      to,
      ...(end === undefined ? [] : [end]),
    ) as unknown as StoredKey[];
    if (found.length > 0) yield found;
    if (end === undefined) return;
    after = end;
    await endLongTurn();
  }
}
