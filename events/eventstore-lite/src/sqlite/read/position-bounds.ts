import type { DatabaseReader } from "./database-reader.ts";

/** The log's last position; 0 if it is empty. */
export function lastPosition(reader: DatabaseReader): number {
  return Number(reader.get("SELECT max(position) AS last FROM events")?.["last"] ?? 0);
}

/** The first position whose event is still in the database; 1 if the log is empty. */
export function firstPosition(reader: DatabaseReader): number {
  return Number(reader.get("SELECT min(position) AS first FROM events")?.["first"] ?? 1);
}

/**
 * The last position recorded at or before `timeMs`; undefined if the database holds none. Times never fall along the
 * log, so halving finds it without an index on time.
 */
export function lastPositionUntil(reader: DatabaseReader, timeMs: number): number | undefined {
  const timeAt = (position: number) => reader.get("SELECT time FROM events WHERE position = ?", position)?.["time"];
  for (;;) {
    const before = firstPosition(reader) - 1;
    const found = countWhile(before, lastPosition(reader), (position) => Number(timeAt(position)) <= timeMs);
    // If the database's first position has changed, some of these events have moved into the archive meanwhile, and the
    // search is repeated.
    if (firstPosition(reader) === before + 1) return found === before ? undefined : found;
  }
}

export interface VersionRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Returns the versions of a stream's events in the database whose positions are within [from, to]. Positions grow with
 * versions.
 */
export function versionsWithin(reader: DatabaseReader, stream: number, from: number, to: number): VersionRange {
  const row = reader.get("SELECT min(version) AS first FROM events WHERE stream = ?", stream);
  const last = reader.get("SELECT max(version) AS last FROM events WHERE stream = ?", stream);
  const [before, versions] = [Number(row?.["first"] ?? 1) - 1, Number(last?.["last"] ?? 0)];
  const positionOf = (version: number) =>
    Number(reader.get("SELECT position FROM events WHERE stream = ? AND version = ?", stream, version)?.["position"]);
  return {
    first: from <= 1 ? before + 1 : countWhile(before, versions, (version) => positionOf(version) < from) + 1,
    last: countWhile(before, versions, (version) => positionOf(version) <= to),
  };
}

/**
 * Returns the last number from `before` + 1 to `last` for which `holds` is true; `before` if there is none. `holds`
 * must not become true again after it was false.
 */
function countWhile(before: number, last: number, holds: (number: number) => boolean): number {
  let known = before;
  let failing = last + 1;
  while (known + 1 < failing) {
    const middle = Math.floor((known + failing) / 2);
    if (holds(middle)) known = middle;
    else failing = middle;
  }
  return known;
}
