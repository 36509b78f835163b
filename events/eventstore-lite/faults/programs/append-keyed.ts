// Appends without end to the log named by its first argument, each append under a key of its own. First it appends the
// keys named from its fourth argument on: those of which its predecessor died before it had their verdict.
import { openSqliteStore } from "eventstore-lite";
import { appendKey, keyOf } from "./keyed.ts";

const CALLERS = 16;

const [file = "", firstNumber = "0", chars = "0", ...unanswered] = process.argv.slice(2);
let next = Number(firstNumber);
const store = await openSqliteStore({ file, owner: true });

async function appendForEver(): Promise<void> {
  for (;;) await appendKey(store, keyOf(next++, Number(chars)));
}

await Promise.all(unanswered.map((key) => appendKey(store, key)));
await Promise.all(Array.from({ length: CALLERS }, appendForEver));
