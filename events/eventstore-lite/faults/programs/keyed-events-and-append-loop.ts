import { type EventStore, type NewEvent, openSqliteStore } from "eventstore-lite";
import { say } from "./print-line.ts";

const STREAMS = 7;
const EVENTS_MAX = 3;

/**
 * Returns the `number`th idempotency key of a test; the events of its append have about `chars` characters of data
 * each.
 */
export function keyOf(number: number, chars = 0): string {
  return `k${number}x${chars}`;
}

/** Returns the name of the stream that a test appends to under this idempotency key. */
export function streamOf(key: string): string {
  return `s${numberOf(key) % STREAMS}`;
}

/**
 * Returns the events that a test appends under this idempotency key: one to three, so that an append torn in two would
 * show.
 */
export function eventsOf(key: string): NewEvent[] {
  const count = 1 + (numberOf(key) % EVENTS_MAX);
  return Array.from({ length: count }, (_, index) => ({
    id: `${key}.${index}`,
    type: `Appended${index}`,
    data: { key, index, count, text: "x".repeat(Number(key.split("x")[1])) },
    meta: {},
  }));
}

function numberOf(key: string): number {
  return Number.parseInt(key.slice(1), 10);
}

/**
 * Appends a key's events and prints the result, for the ledger of the process that started this one: `? key` before, `+
 * key first last` once it is acknowledged, `! key Error` if it is refused.
 */
export async function appendKey(store: EventStore, key: string): Promise<void> {
  say("?", key);
  try {
    const { first, last } = await store.append(streamOf(key), eventsOf(key), { key });
    say("+", key, first, last);
  } catch (error) {
    say("!", key, (error as Error).name);
    throw error;
  }
}

/**
 * Appends without end to the log named by its first argument, each append under a new key. Begins with the keys from
 * its fourth argument on, whose verdicts its killed predecessor did not get.
 */
export async function appendKeyed(callers: number, args: readonly string[]): Promise<void> {
  const [file = "", firstNumber = "0", chars = "0", ...unanswered] = args;
  let next = Number(firstNumber);
  const store = await openSqliteStore({ file, owner: true });

  async function appendForEver(): Promise<void> {
    for (;;) await appendKey(store, keyOf(next++, Number(chars)));
  }

  await Promise.all(unanswered.map((key) => appendKey(store, key)));
  await Promise.all(Array.from({ length: callers }, appendForEver));
}
