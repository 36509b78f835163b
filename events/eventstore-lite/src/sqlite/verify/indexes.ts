import type { DatabaseSync } from "node:sqlite";
import { isDamage } from "../classify-errors.ts";
import type { Fault } from "./check-result-types.ts";
import { byPlace, byType, type Sums, SUMS_BY_PLACE, SUMS_BY_TYPE } from "./index-sums.ts";

interface Index {
  readonly name: string;
  /** SQL that sums the entries of the index. */
  readonly sums: string;
  /**
   * Formats the sums computed from the checked events in the form in which the SQL query `sums` returns the sums of the
   * index's entries. The verification compares both texts.
   */
  readonly sumsOf: (events: Sums) => string;
  /** SQL condition that the index finds the event e. */
  readonly finds: string;
  readonly missing: string;
}

const INDEXES: readonly Index[] = [
  {
    name: "events_by_type",
    sums: SUMS_BY_TYPE,
    sumsOf: byType,
    finds:
      "EXISTS (SELECT 1 FROM events i INDEXED BY events_by_type WHERE i.type = e.type AND i.position = e.position)",
    missing: "the event is not found by its type",
  },
  {
    name: "sqlite_autoindex_events_1",
    sums: SUMS_BY_PLACE,
    sumsOf: byPlace,
    finds: `(SELECT i.position FROM events i INDEXED BY sqlite_autoindex_events_1
      WHERE i.stream = e.stream AND i.version = e.version) IS e.position`,
    missing: "the event is not found by its stream and version",
  },
];

/** The sums of the indexes over the events 1 to `last`, in the order of {@link INDEXES}, or why there are none. */
export type IndexWalk = { readonly sums: readonly unknown[] } | { readonly fault: Fault };

/** Walks each index once, and looks up the names of streams and types. */
export function walkIndexes(db: DatabaseSync, last: number): IndexWalk {
  const sumsOf = ({ name, sums }: Index): unknown =>
    db.prepare(`SELECT ${sums} AS sums FROM events e INDEXED BY ${name} WHERE +e.position <= ?`).get(last)?.["sums"];
  try {
    const fault = findUnnamed(db, "stream", last) ?? findUnnamed(db, "type", last);
    return fault === undefined ? { sums: INDEXES.map(sumsOf) } : { fault };
  } catch (error) {
    if (isDamage(error)) return { fault: UNREADABLE };
    throw error;
  }
}

const UNREADABLE: Fault = { position: 1, reason: "an index by which events are found cannot be read" };

/**
 * Returns a fault unless readers find all events 1 to `last` by the indexes. The hash chain does not cover the indexes:
 * if one lost a stream's events, an append would begin that stream again at version 1.
 */
export function findUnindexed(db: DatabaseSync, walk: IndexWalk, events: Sums, last: number): Fault | undefined {
  if ("fault" in walk) return walk.fault;
  const index = INDEXES.find(({ sumsOf }, at) => walk.sums[at] !== sumsOf(events));
  if (index === undefined) return undefined;
  try {
    return findMissing(db, index, last);
  } catch (error) {
    if (isDamage(error)) return UNREADABLE;
    throw error;
  }
}

/**
 * Looks up the events in the index one by one, which takes ten times as long as comparing the sums of all index
 * entries. Returns the first event that the index does not find.
 */
function findMissing(db: DatabaseSync, { finds, missing }: Index, last: number): Fault {
  const first = db
    .prepare(`SELECT min(e.position) AS first FROM events e NOT INDEXED WHERE e.position <= ? AND NOT (${finds})`)
    .get(last)?.["first"];
  // All events are found, so the sums differ because the index has more entries than there are events.
  return { position: Number(first ?? 1), reason: missing };
}

/**
 * Returns the first event whose stream or type is missing in the index of names. Readers and appends would take such a
 * stream for empty.
 */
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
