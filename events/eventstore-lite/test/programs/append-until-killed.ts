// Appends without end to the log named by its argument; prints the position of each append once it is acknowledged.
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { openSqliteStore } from "eventstore-lite";

const CALLERS = 16;
const STDOUT = 1;

const [file = "", holder = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file, owner: { holder } });

async function appendForEver(stream: string): Promise<void> {
  for (;;) {
    const id = randomUUID();
    const { last } = await store.append(stream, [{ id, type: "Appended", data: { stream }, meta: {} }]);
    // Prints at once and without a buffer, because the acknowledgement must be known even if the process dies now.
    writeSync(STDOUT, `${last}\n`);
  }
}

await Promise.all(Array.from({ length: CALLERS }, (_, caller) => appendForEver(`s${caller}`)));
