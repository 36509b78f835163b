import { createHash, hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore } from "../src/index.ts";
import { longLog } from "./make-long-log.ts";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench } from "./compare-contenders.ts";

const HASH_BYTES = 32;

/** Number of bytes that are passed to a hash at once: so many that the calls cost nothing compared with the hashing. */
const PIECE_BYTES = 16 * 1024 * 1024;

/** Query for the canonical text of each event, as the README documents it. */
const SELECT_CANONICAL = `
  SELECT e.position || char(10) || s.name || char(10) || e.version || char(10) || e.id || char(10) || t.name
    || char(10) || e.time || char(10) || e.data || char(10) || e.meta AS canonical
  FROM events e JOIN streams s ON s.id = e.stream JOIN types t ON t.id = e.type ORDER BY e.position`;

/**
 * Measures the check of the whole chain against hashing the same bytes in one thread that has them in memory already.
 */
export const verify: Bench = async (options) => {
  const { file, events } = await longLog(options);
  await using store = await openSqliteStore({ file });
  const { hash: head } = await store.head();
  const pieces = loadPieces(file);
  const rates = await interleave(roundsOf(options), {
    ours: () =>
      perSecond(events, async () => {
        const { ok, checked } = await store.verify();
        if (!ok || checked !== events) throw new Error("the log was not found whole");
      }),
    links: () =>
      perSecond(events, () => {
        if (hashLinks(pieces) !== head) throw new Error("these are not the bytes of the log");
      }),
    bytes: () => perSecond(events, () => hashBytes(pieces)),
  });
  return [
    compare("verify; limit: SHA-256 of the same bytes, one hash an event", "/s", rates.ours, rates.links, atLeast(0.5)),
    compare("verify; limit: SHA-256 of the same bytes, one hash in all", "/s", rates.ours, rates.bytes, atLeast(0.5)),
  ];
};

/**
 * Bytes to hash for many events, one after the other: for each event, space for the previous hash, then its canonical
 * bytes.
 */
interface Piece {
  readonly bytes: Buffer;
  /** Offsets in `bytes` at which each event's bytes end. */
  readonly ends: readonly number[];
}

function loadPieces(file: string): readonly Piece[] {
  using db = new DatabaseSync(file, { readOnly: true });
  const pieces: Piece[] = [];
  let parts: Buffer[] = [];
  let ends: number[] = [];
  let length = 0;
  const complete = (): void => {
    pieces.push({ bytes: Buffer.concat(parts), ends });
    [parts, ends, length] = [[], [], 0];
  };
  for (const { canonical } of db.prepare(SELECT_CANONICAL).iterate()) {
    const part = Buffer.concat([Buffer.alloc(HASH_BYTES), Buffer.from(String(canonical))]);
    parts.push(part);
    length += part.length;
    ends.push(length);
    if (length >= PIECE_BYTES) complete();
  }
  complete();
  return pieces;
}

/** Computes the hash chain over the pieces and nothing else, and returns its last hash. */
function hashLinks(pieces: readonly Piece[]): string {
  let previous = Buffer.alloc(HASH_BYTES);
  for (const { bytes, ends } of pieces) {
    let start = 0;
    for (const end of ends) {
      bytes.set(previous, start);
      previous = hash("sha256", bytes.subarray(start, end), "buffer");
      start = end;
    }
  }
  return previous.toString("hex");
}

function hashBytes(pieces: readonly Piece[]): void {
  const all = createHash("sha256");
  for (const { bytes } of pieces) all.update(bytes);
  all.digest();
}
