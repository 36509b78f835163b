/** Measures the least that reading costs: the rows from SQLite, in order, with some of their columns parsed as JSON. */
import { DatabaseSync, type StatementSync } from "node:sqlite";

export interface Scan extends Disposable {
  /** Reads the rows of the table, or of a range of it, once and discards them. Returns their number. */
  run(range?: { readonly from: number; readonly to: number }): number;
}

/** Way to fetch the rows of a prepared SQLite statement; which one is fastest depends on runtime and machine. */
type Way = (statement: StatementSync, first: number, last: number, onRow: (row: readonly string[]) => void) => void;

const WAYS: readonly Way[] = [iterating, inChunksOf(128), inChunksOf(1_024), inChunksOf(8_192)];

/**
 * Number of rows that each trial scan reads, enough to find the fastest way to fetch rows even after the code is
 * compiled.
 */
const TRIAL_ROWS = 50_000;
const TRIALS = 3;

/** Opens a table for scanning. The columns in `json` follow those in `columns`, and each of their values is parsed. */
export function openScan(file: string, columns: readonly string[], json: readonly string[]): Scan {
  const db = new DatabaseSync(file, { readOnly: true });
  const last = Number(db.prepare("SELECT max(position) AS last FROM events").get()?.["last"]);
  const sql = `SELECT ${[...columns, ...json].join()} FROM events WHERE position BETWEEN ? AND ? ORDER BY position`;
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);

  function scan(way: Way, from: number, to: number): number {
    let rows = 0;
    way(statement, from, to, (row) => {
      for (let column = columns.length; column < row.length; column++) JSON.parse(row[column]!);
      rows++;
    });
    return rows;
  }

  const fastest = fastestOf(WAYS, (way) => scan(way, 1, Math.min(last, TRIAL_ROWS)));
  return { run: ({ from, to } = { from: 1, to: last }) => scan(fastest, from, to), [Symbol.dispose]: () => db.close() };
}

function iterating(...[statement, first, last, onRow]: Parameters<Way>): void {
  for (const row of statement.iterate(first, last)) onRow(row as unknown as string[]);
}

function inChunksOf(rows: number): Way {
  return (statement, first, last, onRow) => {
    for (let low = first; low <= last; low += rows) {
      for (const row of statement.all(low, Math.min(last, low + rows - 1))) onRow(row as unknown as string[]);
    }
  };
}

/**
 * Returns the fastest way to fetch rows. Runs several trials of each in turn and compares the best ones, because the
 * first are not compiled yet and other programs disturb some.
 */
function fastestOf(ways: readonly Way[], attempt: (way: Way) => void): Way {
  const bestMs = ways.map(() => Infinity);
  for (let trial = 0; trial < TRIALS; trial++) {
    for (const [index, way] of ways.entries()) {
      const start = performance.now();
      attempt(way);
      bestMs[index] = Math.min(bestMs[index]!, performance.now() - start);
    }
  }
  return ways[bestMs.indexOf(Math.min(...bestMs))]!;
}
