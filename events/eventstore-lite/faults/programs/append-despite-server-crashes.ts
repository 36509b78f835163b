// Appends without end to the log at the URL in its first argument, even if the server crashes. Each append has a unique
// name, but no idempotency key: what is appended twice is in the log twice.
import { setTimeout as delay } from "node:timers/promises";
import { StoreError, type EventStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { keyOf, eventsOf, streamOf } from "./keyed-events-and-append-loop.ts";
import { say } from "./print-line.ts";

const CALLERS = 8;
/** Pause of a refused caller before its next attempt. */
const PAUSE_MS = 20;

const [url = "", firstNumber = "0"] = process.argv.slice(2);
let next = Number(firstNumber);

async function open(): Promise<EventStore> {
  for (;;) {
    try {
      return await openPostgresStore({ url });
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "unavailable") throw error;
      await delay(PAUSE_MS);
    }
  }
}

async function appendForEver(store: EventStore): Promise<void> {
  for (;;) {
    const key = keyOf(next++);
    say("?", key);
    try {
      const { first, last } = await store.append(streamOf(key), eventsOf(key));
      say("+", key, first, last);
    } catch (error) {
      say("!", key, (error as Error).name);
      if (!(error instanceof StoreError) || error.code === "closed") throw error;
      await delay(PAUSE_MS);
    }
  }
}

const store = await open();
await Promise.all(Array.from({ length: CALLERS }, () => appendForEver(store)));
