// Appends without end to the log named by its first argument, for many callers at once.
import { appendKeyed } from "./events-of-idempotency-key.ts";

await appendKeyed(16, process.argv.slice(2));
