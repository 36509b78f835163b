/**
 * Outbox with which the benchmark compares the service: one that could be written in a day, with fastify and
 * better-sqlite3. Runs on Node, in the folder in which both are installed.
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { CHANNELS, deliver, type Channel } from "./compared-outbox-delivery.ts";
import { takeClicks, type Click } from "./receive-outbox-clicks.ts";

// The part of better-sqlite3's interface that is used here; the package is installed only for the comparison.
interface Statement {
  run(...values: unknown[]): { readonly lastInsertRowid: number | bigint };
  all(...values: unknown[]): unknown[];
}
interface Database {
  pragma(text: string, options?: { readonly simple: true }): unknown;
  exec(sql: string): void;
  prepare(sql: string): Statement;
  transaction<Args extends unknown[], Result>(work: (...args: Args) => Result): (...args: Args) => Result;
}
interface Row {
  readonly id: number;
  readonly channel: Channel;
  readonly data: string;
  readonly event_id: string;
}

const ROWS_TAKEN = 100;
const IN_FLIGHT = 16;
/** Time in ms for which the program waits if it finds the outbox empty. */
const IDLE_MS = 10;

const Sqlite = createRequire(import.meta.url)("better-sqlite3") as new (file: string) => Database;

// Arguments of this program: the path of the database, and the URL of the simulated networks to which it posts the
// clicks.
const [file = "", sinks = ""] = process.argv.slice(2);
const db = new Sqlite(file);
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("synchronous is not FULL");
db.exec(`
  CREATE TABLE events (id TEXT PRIMARY KEY, time INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
  CREATE TABLE outbox (id INTEGER PRIMARY KEY, event_id TEXT NOT NULL, channel TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0) STRICT;
  CREATE INDEX outbox_open ON outbox (id) WHERE done = 0;`);
const insertEvent = db.prepare("INSERT INTO events VALUES (?, ?, ?)");
const insertRow = db.prepare("INSERT INTO outbox (event_id, channel) VALUES (?, ?)");
const openRows = db.prepare(
  "SELECT o.id, o.channel, o.event_id, e.data FROM outbox o JOIN events e ON e.id = o.event_id WHERE o.done = 0 ORDER BY o.id LIMIT ?",
);
const markDone = db.prepare("UPDATE outbox SET done = 1, attempts = attempts + 1 WHERE id = ?");
const markFailed = db.prepare("UPDATE outbox SET attempts = attempts + 1 WHERE id = ?");

/** Records a click in one durable transaction: the event and a row for each channel. */
const record = db.transaction((click: Click): string => {
  const id = randomUUID();
  insertEvent.run(id, Date.now(), JSON.stringify(click));
  for (const channel of CHANNELS) insertRow.run(id, channel);
  return id;
});
const mark = db.transaction((rows: readonly Row[], taken: readonly boolean[]): void => {
  for (const [at, { id }] of rows.entries()) (taken[at] === true ? markDone : markFailed).run(id);
});

await takeClicks(record);

for (;;) {
  // Takes up to ROWS_TAKEN rows from the outbox, posts them, and marks the delivered ones.
  const rows = openRows.all(ROWS_TAKEN) as Row[];
  if (rows.length === 0) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  else mark(rows, await deliverAll(rows));
}

async function deliverAll(rows: readonly Row[]): Promise<readonly boolean[]> {
  const taken: boolean[] = [];
  let next = 0;
  const deliverSome = async (): Promise<void> => {
    for (;;) {
      const at = next++;
      const row = rows[at];
      if (row === undefined) return;
      taken[at] = await isDelivered(row);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, deliverSome));
  return taken;
}

function isDelivered({ channel, event_id, data }: Row): Promise<boolean> {
  return deliver(sinks, channel, event_id, JSON.parse(data) as Click).then(
    () => true,
    () => false,
  );
}
