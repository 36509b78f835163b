import type { DatabaseSync } from "node:sqlite";
import { isDamage } from "../sqlite/faults.ts";
import type { Fault } from "./range.ts";

/**
 * Sums by which two walks over the same events are told apart unless what differs was chosen to have the same ones: an
 * accident is found, and against intent an index protects nobody. Of every number the lower 24 bits, so that no sum
 * leaves SQLite's integers, whatever somebody has stored.
 */
const sumsOf = (key: string): string =>
  ["e.position", key, `e.position * (${key})`].map((value) => `sum((${value}) & 16777215)`).join(" || ' ' || ") +
  " || ' ' || count(*)";

interface Index {
  readonly name: string;
  /** Its columns as one number. */
  readonly key: string;
  /** A condition on the event e: it is found by way of the index. */
  readonly finds: string;
  readonly missing: string;
}

const INDEXES: readonly Index[] = [
  {
    name: "events_by_type",
    key: "e.type",
    finds:
      "EXISTS (SELECT 1 FROM events i INDEXED BY events_by_type WHERE i.type = e.type AND i.position = e.position)",
    missing: "the event is not found by its type",
  },
  {
    name: "sqlite_autoindex_events_1",
    key: "e.stream * 1021 + e.version",
    finds: `(SELECT i.position FROM events i INDEXED BY sqlite_autoindex_events_1
      WHERE i.stream = e.stream AND i.version = e.version) IS e.position`,
    missing: "the event is not found by its stream and version",
  },
];

/**
 * Whether readers find by the indexes what the events 1 to `last` hold. The chain cannot tell: it covers the events
 * alone, and a stream whose index lost an event could be begun a second time. Walks the events and each index once.
 */
export function findUnindexed(db: DatabaseSync, last: number): Fault | undefined {
  const walk = (hint: string, indexes: readonly Index[]): unknown[] => {
    const sums = indexes.map(({ key }, at) => `${sumsOf(key)} AS sums${at}`).join();
    return Object.values(db.prepare(`SELECT ${sums} FROM events e ${hint} WHERE +e.position <= ?`).get(last) ?? {});
  };
  try {
    const wanted = walk("NOT INDEXED", INDEXES);
    for (const [at, index] of INDEXES.entries()) {
      if (walk(`INDEXED BY ${index.name}`, [index])[0] !== wanted[at]) return findMissing(db, index, last);
    }
    return findUnnamed(db, "stream", last) ?? findUnnamed(db, "type", last);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { position: 1, reason: "an index by which events are found cannot be read" };
  }
}

/** Looks the events up one by one, which takes ten times as long as the walks. */
function findMissing(db: DatabaseSync, { finds, missing }: Index, last: number): Fault {
  const first = db
    .prepare(`SELECT min(e.position) AS first FROM events e NOT INDEXED WHERE e.position <= ? AND NOT (${finds})`)
    .get(last)?.["first"];
  // None: the index has more than the events.
  return { position: Number(first ?? 1), reason: missing };
}

/** The first event whose stream or type is not found by its name: such a stream counts as empty. */
function findUnnamed(db: DatabaseSync, what: "stream" | "type", last: number): Fault | undefined {
  const names = `${what}s`;
  const lost = db
    .prepare(
      `SELECT n.id FROM ${names} n NOT INDEXED WHERE n.id IS NOT
        (SELECT i.id FROM ${names} i INDEXED BY sqlite_autoindex_${names}_1 WHERE i.name = n.name) LIMIT 1`,
    )
    .get()?.["id"];
  if (lost === undefined) return undefined;
  const first = db
    .prepare(`SELECT min(position) AS first FROM events NOT INDEXED WHERE ${what} = ? AND position <= ?`)
    .get(Number(lost), last)?.["first"];
  return { position: Number(first ?? 1), reason: `the event's ${what} is not found by its name` };
}
