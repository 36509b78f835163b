// Appends without end to the log named by its first argument, and archives all but the newest events meanwhile, into
// the folder named by its second argument. Appends continue with the number in its third.
import { openSqliteStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder } from "eventstore-lite/segments";
import { appendKey, keyOf } from "./keyed-events-and-append-loop.ts";
import { say } from "./print-line.ts";

const KEPT_EVENTS = 5;

const [place = "", folder = "", first = "0"] = process.argv.slice(2);
const segments = createSegmentFolder(folder);
const store = place.startsWith("postgres:")
  ? await openPostgresStore({ url: place, segments })
  : await openSqliteStore({ file: place, segments });

for (let next = Number(first); ; next += 3) {
  await Promise.all([next, next + 1, next + 2].map((number) => appendKey(store, keyOf(number, 200))));
  const { position } = await store.head();
  for await (const { last } of store.archive({ to: position - KEPT_EVENTS })) say("archived", last);
}
