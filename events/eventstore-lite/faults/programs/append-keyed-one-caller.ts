// Appends without end to the log named by its first argument, for one caller. The writer thread is therefore idle
// before each append, so that large appends are sent to it in pieces.
import { appendKeyed } from "./keyed-events-and-append-loop.ts";

await appendKeyed(1, process.argv.slice(2));
