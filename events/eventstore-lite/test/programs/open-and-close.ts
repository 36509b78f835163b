// Opens the log named by its argument, appends, closes, and must then end by itself.
import { openSqliteStore } from "eventstore-lite";

const [file = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file, owner: true });
await store.append("a", [{ id: "1", type: "Opened", data: {}, meta: {} }]);
await store[Symbol.asyncDispose]();
