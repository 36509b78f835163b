import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { KeyRange } from "../archive/catalogue.ts";
import { endLongTurn } from "../next-turn.ts";
import type { StoredKey } from "../store.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

/**
 * Of each idempotency key that a segment holds: a hash, and the number of the segment, from 1 on. Some 14 bytes where the
 * whole key takes 150. Two keys may have one hash, so that the whole key decides.
 */
export const ARCHIVED_KEYS = `
  CREATE TABLE archived_keys (
    hash INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    PRIMARY KEY (hash, segment)
  ) STRICT, WITHOUT ROWID;
`;

/** SQLite stores 48 bits in as many bits. Of 100,000,000 keys one in 2,800,000 new ones has the hash of an archived one. */
const HASH_BYTES = 6;

function hashKey(key: string): number {
  return hash("sha256", key, "buffer").readIntBE(0, HASH_BYTES);
}

const FIND = "SELECT segment FROM archived_keys WHERE hash = ?";

/** The numbers of the segments that may hold a key. */
export function findKeySegments(reader: DatabaseReader, key: string): readonly number[] {
  return reader.all(FIND, hashKey(key)).map(({ segment }) => Number(segment));
}

export interface ArchivedKeys {
  /** How many segments may hold a key. */
  count(key: string): number;
  /**
   * Replaces whole keys by their hashes, which the segment that ends at position `last` holds; inside of a transaction. A
   * key that the log knows otherwise, or no longer whole, stays as it is.
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

/** Keys that one statement looks at: a millisecond, and some more where it answers all of them. */
const CHUNK_KEYS = 2_048;

/** In the order of the keys. No index leads from a position to its keys: each append would pay for it. */
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
