// Appends without end to the log named by its first argument, for many callers at once.
import { appendKeyed } from "./keyed-events-and-append-loop.ts";

await appendKeyed(16, process.argv.slice(2));
