import { expect, test } from "bun:test";
import { DatabaseSync } from "node:sqlite";
import {
  addAllTo,
  addTo,
  byPlace,
  byType,
  newSums,
  SUMS_BY_PLACE,
  SUMS_BY_TYPE,
} from "../src/sqlite/verify/index-sums.ts";

/** Maximum number that the runtime can read from SQLite: far more than any log has positions. */
const LARGEST = Number.MAX_SAFE_INTEGER;

/** Rows of a test log: position, type, stream and version of each event. */
const ROWS: readonly (readonly [number, number, number, number])[] = [
  [1, 1, 1, 1],
  [2 ** 24, 255, 2 ** 24 + 1, 2 ** 24 - 1],
  [2 ** 40 + 7, 2 ** 31, 2 ** 42 + 5, 2 ** 33 + 3],
  [LARGEST, 2 ** 52 + 1, 2 ** 43 - 1, LARGEST],
];

test.each([0, 1, ROWS.length])(
  "SQL and the check compute the same sums over %p events, even with large numbers",
  (count) => {
    using db = new DatabaseSync(":memory:");
    db.exec("CREATE TABLE events (position INTEGER PRIMARY KEY, type, stream, version)");
    const insert = db.prepare("INSERT INTO events VALUES (?, ?, ?, ?)");
    const sums = newSums();
    for (const [position, type, stream, version] of ROWS.slice(0, count)) {
      insert.run(position, type, stream, version);
      const ofOne = newSums();
      addTo(ofOne, position, type, stream, version);
      addAllTo(sums, ofOne);
    }
    const row = db.prepare(`SELECT ${SUMS_BY_TYPE} AS types, ${SUMS_BY_PLACE} AS places FROM events e`).get();
    expect({ ...row }).toEqual({ types: byType(sums), places: byPlace(sums) });
  },
);
