// Appends to the log named by its first argument while few file descriptors are free: as many as the second argument
// says. The third says if the others are taken `before` or `after` the log is opened. Prints the result.
import { openSqliteStore } from "eventstore-lite";
import { closeSync, openSync } from "node:fs";
import { appendKey, keyOf } from "./keyed-events-and-append-loop.ts";
import { say } from "./print-line.ts";

const APPENDS = 50;

const [file = "", left = "0", when = ""] = process.argv.slice(2);

function takeDescriptors(): void {
  const taken: number[] = [];
  for (;;) {
    try {
      taken.push(openSync("/dev/null", "r"));
    } catch {
      break;
    }
  }
  for (const descriptor of taken.slice(0, Number(left))) closeSync(descriptor);
}

if (when === "before") takeDescriptors();
try {
  await using store = await openSqliteStore({ file, owner: true });
  // Reads once, because the reading connection opens its files only with its first read.
  await store.head();
  if (when === "after") takeDescriptors();
  for (let number = 0; number < APPENDS; number += 1) await appendKey(store, keyOf(number));
  let read = 0;
  for await (const _event of store.read()) read += 1;
  say("read", read);
} catch (error) {
  say("refused", (error as Error).name, (error as Error).message);
}
