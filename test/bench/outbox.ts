/**
 * What one would write in a day instead: fastify and an outbox in better-sqlite3. Runs on Node, in the folder in which
 * both are installed. A click is one durable transaction (the event and a row for each channel); a loop takes a hundred
 * rows, posts them, and marks them. Arguments: the database, URL of the sinks.
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

// The part of their interfaces that is used here; the packages are installed only where they are compared.
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
interface Reply {
  code(status: number): void;
}
interface App {
  post(
    path: string,
    options: object,
    handler: (request: { readonly body: Click }, reply: Reply) => Promise<object>,
  ): void;
  listen(options: { readonly host: string; readonly port: number }): Promise<string>;
}
interface Click {
  readonly event: string;
  readonly domain: string;
  readonly short_code: string;
  readonly original_url: string;
  readonly ip?: string;
  readonly user_agent?: string;
}
interface Row {
  readonly id: number;
  readonly channel: "ads" | "chat" | "messaging";
  readonly data: string;
  readonly event_id: string;
}

const ROWS_TAKEN = 100;
const IN_FLIGHT = 16;
const TIMEOUT_MS = 5_000;
/** Between two looks at an empty outbox. */
const IDLE_MS = 10;

const require = createRequire(import.meta.url);
const fastify = require("fastify") as () => App;
const Sqlite = require("better-sqlite3") as new (file: string) => Database;

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

const record = db.transaction((click: Click): string => {
  const id = randomUUID();
  insertEvent.run(id, Date.now(), JSON.stringify(click));
  for (const channel of ["ads", "chat", "messaging"]) insertRow.run(id, channel);
  return id;
});
const mark = db.transaction((rows: readonly Row[], taken: readonly boolean[]): void => {
  for (const [at, { id }] of rows.entries()) (taken[at] === true ? markDone : markFailed).run(id);
});

const text = { type: "string" };
const properties = { event: text, domain: text, short_code: text, original_url: text, ip: text, user_agent: text };
const body = { type: "object", properties, required: ["event", "domain", "short_code", "original_url"] };

const app = fastify();
app.post("/api/tracking/event", { schema: { body } }, async (request, reply) => {
  const id = record(request.body);
  reply.code(202);
  return { id };
});
console.error(JSON.stringify({ url: await app.listen({ host: "127.0.0.1", port: 0 }) }));

for (;;) {
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
      taken[at] = await deliver(row).catch(() => false);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, deliverSome));
  return taken;
}

async function deliver({ channel, event_id, data }: Row): Promise<boolean> {
  const { path, content } = requestOf(channel, event_id, JSON.parse(data) as Click);
  const answer = await fetch(sinks + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await answer.text();
  return answer.ok;
}

function requestOf(channel: Row["channel"], id: string, click: Click): { path: string; content: object } {
  const words = `Link event: ${click.event}\nLink: ${click.domain}/${click.short_code}\nTarget: ${click.original_url}`;
  if (channel === "chat") return { path: "/slack/webhook", content: { text: words } };
  if (channel === "messaging") return { path: "/bot1:token/sendMessage", content: { chat_id: "1", text: words } };
  const user_data = { client_user_agent: click.user_agent, client_ip_address: click.ip };
  const event = {
    event_name: "PageView",
    event_time: Math.floor(Date.now() / 1000),
    event_id: id,
    event_source_url: click.original_url,
    action_source: "website",
    user_data,
  };
  return { path: "/v26.0/1/events", content: { data: [event], access_token: "token" } };
}
