// Copies the log named by its first argument to its second.
import { openSqliteStore } from "eventstore-lite";

const [file = "", copy = ""] = process.argv.slice(2);
await using store = await openSqliteStore({ file });
await store.backup(copy);
