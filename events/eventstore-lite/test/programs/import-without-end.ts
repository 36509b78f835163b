// Imports into the log named by its argument, from a source that stops after some events and never ends.
import { writeSync } from "node:fs";
import { importSqliteLog, openSqliteStore, type NewEvent, type Recorded } from "eventstore-lite";

const EVENTS = 5_000;
const STDOUT = 1;

const [file = ""] = process.argv.slice(2);

async function* events(): AsyncGenerator<Recorded<NewEvent>, void, void> {
  {
    await using source = await openSqliteStore({ file: `${file}.source` });
    const event: NewEvent = { id: "1", type: "T", data: "x".repeat(1_000), meta: {} };
    await source.append(
      "a",
      Array.from({ length: EVENTS }, () => event),
    );
    yield* source.readStored();
  }
  writeSync(STDOUT, "waiting\n");
  await new Promise((resolve) => setInterval(resolve, 2 ** 30));
}

await importSqliteLog({ file, events: events() });
