// Opens logs that cannot be opened, and prints the kind of each fault. For any runtime.
import { writeFileSync } from "node:fs";
import { openSqliteStore } from "eventstore-lite";

const [file = ""] = process.argv.slice(2);

await using _owned = await openSqliteStore({ file, owner: true });
await tell("owned", openSqliteStore({ file, owner: true }));

const text = `${file}.txt`;
writeFileSync(text, "Not a database, and longer than its header.".repeat(100));
await tell("a text", openSqliteStore({ file: text }));

async function tell(what: string, opening: Promise<unknown>): Promise<void> {
  const fault: unknown = await opening.catch((thrown: unknown) => thrown);
  console.log(`${what}: ${fault instanceof Error ? `${fault.name}, ${fault.message}` : "opened"}`);
}
