// Appends until the operating system refuses to let the log grow, and prints the outcome as JSON.
import { openSqliteStore } from "eventstore-lite";

const [file = ""] = process.argv.slice(2);
await using store = await openSqliteStore({ file });
const append = () => store.append("a", [{ id: "1", type: "T", data: "x".repeat(4_000), meta: {} }]);

let acknowledged = 0;
let fault: unknown;
while (fault === undefined) {
  try {
    await append();
    acknowledged += 1;
  } catch (error) {
    fault = error;
  }
}
const failed = await store.failed;
const later = await append().catch((error: Error) => error.name);
const { position } = await store.head();
console.log(
  JSON.stringify({ acknowledged, fault: (fault as Error).name, isFailed: failed === fault, later, position }),
);
