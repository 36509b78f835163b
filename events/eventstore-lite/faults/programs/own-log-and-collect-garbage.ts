// Tries to own the log named by its first argument, and prints `won` or the name of the error. For each line of input
// it collects garbage. It keeps no reference to its store, so the store itself has to keep the lock.
import { openSqliteStore } from "eventstore-lite";
import { say } from "./print-line.ts";

const [file = ""] = process.argv.slice(2);

/**
 * Number of garbage collections before the test looks at the lock. Several are needed, because an object may become
 * garbage only when another one is collected.
 */
const COLLECTIONS = 20;
const GARBAGE_ITEMS = 10_000;

async function own(): Promise<void> {
  await openSqliteStore({ file, owner: { holder: "rival" } });
}

async function collect(): Promise<void> {
  for (let round = 0; round < COLLECTIONS; round += 1) {
    Array.from({ length: GARBAGE_ITEMS }, (_, index) => ({ index }));
    Bun.gc(true);
    // Waits a turn, because references that are still on a stack are released between two turns.
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
