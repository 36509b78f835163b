import type { DatabaseReader } from "./database-reader.ts";

/** The log's last position, 0 when it is empty. */
export function lastPosition(reader: DatabaseReader): number {
  return Number(reader.get("SELECT max(position) AS last FROM events")?.["last"] ?? 0);
}

/**
 * The last position whose event was recorded at or before `timeMs`, 0 when there is none.
 * Times never fall along the log, so halving finds it without an index on time.
 */
export function lastPositionUntil(reader: DatabaseReader, timeMs: number): number {
  const timeAt = (position: number) => reader.get("SELECT time FROM events WHERE position = ?", position)?.["time"];
  return countWhile(lastPosition(reader), (position) => Number(timeAt(position)) <= timeMs);
}

export interface VersionRange {
  readonly first: number;
  readonly last: number;
}

/** The versions of a stream whose positions are within [from, to]; positions grow with versions. */
export function versionsWithin(reader: DatabaseReader, stream: number, from: number, to: number): VersionRange {
  const row = reader.get("SELECT max(version) AS last FROM events WHERE stream = ?", stream);
  const versions = Number(row?.["last"] ?? 0);
  const positionOf = (version: number) =>
    Number(reader.get("SELECT position FROM events WHERE stream = ? AND version = ?", stream, version)?.["position"]);
  return {
    first: from <= 1 ? 1 : countWhile(versions, (version) => positionOf(version) < from) + 1,
    last: countWhile(versions, (version) => positionOf(version) <= to),
  };
}

/** How many of 1..count fulfil `holds`, which holds up to some number and not beyond it. */
function countWhile(count: number, holds: (number: number) => boolean): number {
  let known = 0;
  let failing = count + 1;
  while (known + 1 < failing) {
    const middle = Math.floor((known + failing) / 2);
    if (holds(middle)) known = middle;
    else failing = middle;
  }
  return known;
}
