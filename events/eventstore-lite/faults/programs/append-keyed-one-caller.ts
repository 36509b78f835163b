// Appends without end to the log named by its first argument, for one caller. The writer thread is therefore idle
// before each append, and only to an idle thread is a large append sent in pieces.
import { appendKeyed } from "./keyed-events-and-append-loop.ts";

await appendKeyed(1, process.argv.slice(2));
