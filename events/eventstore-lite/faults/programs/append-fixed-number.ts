// Makes a fixed number of keyed appends to the log named by its argument while its system calls are tampered with, and
// prints the result of each. A refusal for want of space is retried; any other is final.
import { openSqliteStore } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import { appendKey, keyOf } from "./keyed-events-and-append-loop.ts";
import { say } from "./print-line.ts";

const ROUNDS = 8;
/**
 * Number of callers that append at once in each round. Their appends become two transactions, so that the second is on
 * its way while the first may fail.
 */
const CALLERS = 4;
const TRIES_MAX = 5;

const [file = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file, owner: true }).catch((error: Error) => {
  say("refused", error.name, error.message);
  process.exit(0);
});

let isInDoubt = false;

async function appendWhenThereIsRoom(key: string): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    try {
      return await appendKey(store, key);
    } catch (error) {
      isInDoubt ||= (error as Error).name === "AppendInDoubt";
      if (!(error instanceof StoreFull)) return;
    }
  }
}

for (let round = 0; round < ROUNDS; round += 1) {
  const keys = Array.from({ length: CALLERS }, (_, caller) => keyOf(round * CALLERS + caller));
  const first = keys.splice(0, CALLERS / 2).map(appendWhenThereIsRoom);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  await Promise.all([...first, ...keys.map(appendWhenThereIsRoom)]);
}
if (isInDoubt) {
  await appendWhenThereIsRoom(keyOf(ROUNDS * CALLERS));
  say("failed", (await store.failed).name);
}
await store[Symbol.asyncDispose]();
say("closed");
