// Appends without end to the log named by its first argument, for one caller: the writer thread is idle at each append,
// and takes a large one in pieces.
import { appendKeyed } from "./idempotency-keys.ts";

await appendKeyed(1, process.argv.slice(2));
