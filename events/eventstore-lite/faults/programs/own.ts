// Tries to own the log named by its first argument, and says `won` or the name of the error. An owner appends a little
// whenever it is asked to by a line on its input, and ends when that ends. It refers to its store no more than it has
// to: what keeps the log its own has to be kept by the store's own code.
import { openSqliteStore } from "eventstore-lite";
import { say } from "./say.ts";

const [file = ""] = process.argv.slice(2);

/** A collection takes what was let go in the round before it. */
const COLLECTIONS = 20;
const GARBAGE_ITEMS = 10_000;

async function own(): Promise<void> {
  await openSqliteStore({ file, owner: { holder: "rival" } });
}

async function collect(): Promise<void> {
  for (let round = 0; round < COLLECTIONS; round += 1) {
    Array.from({ length: GARBAGE_ITEMS }, (_, index) => ({ index }));
    Bun.gc(true);
    // What a stack still refers to is let go between two turns.
    await Bun.sleep(1);
  }
}

try {
  await own();
  say("won");
} catch (error) {
  say((error as Error).name);
  process.exit(0);
}
for await (const _line of console) {
  await collect();
  say("collected");
}
