// Contends without end for a lease on the log named by its first argument, as the holder named by the second. While it
// holds the lease, it appends some events fenced by it, prints the position of each, and then releases the lease.
import { LeaseLost, openSqliteStore } from "eventstore-lite";
import { say } from "./print-line.ts";

const TTL_MS = 500;
const APPENDS_PER_TERM = 20;
/** Pause between two attempts to acquire the lease. */
const PAUSE_MS = 2;

const [file = "", holder = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file });

async function appendOnce(token: number): Promise<void> {
  const event = { id: crypto.randomUUID(), type: "Held", data: { holder, token }, meta: {} };
  const { last } = await store.append("run", [event], { fence: { lease: "run", token } });
  say("+", last);
}

for (;;) {
  await Bun.sleep(PAUSE_MS);
  const lease = await store.leases.acquire("run", { holder, ttlMs: TTL_MS });
  if (!lease) continue;
  try {
    for (let count = 0; count < APPENDS_PER_TERM; count += 1) await appendOnce(lease.token);
    await store.leases.release(lease);
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    say("lost", lease.token);
  }
}
