// Appends to a log on PostgreSQL, follows, verifies, copies and closes it; then ends by itself. For any runtime.
import { openPostgresStore } from "eventstore-lite/postgres";

const [url = "", copy = ""] = process.argv.slice(2);

const store = await openPostgresStore({ url });
await store.append("a", [{ id: "1", type: "T", data: { n: 1 }, meta: {} }]);
for await (const { position, data } of store.subscribe({ from: 1, signal: new AbortController().signal })) {
  console.log(`read ${position} ${JSON.stringify(data)}`);
  break;
}
console.log(`verified ${(await store.verify()).ok}`);
console.log(`copied ${(await store.backup(copy)).head.position}`);
await store[Symbol.asyncDispose]();
console.log("closed");
