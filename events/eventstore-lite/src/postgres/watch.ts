import { setTimeout as delay } from "node:timers/promises";
import { openDatabase } from "./database.ts";
import { channelOf } from "./notifications.ts";

/** How late an append by another process may be seen. */
const POLL_MS = 100;
/** The same where notifications do not arrive, as behind a pool that gives each transaction another connection. */
const POLL_ALONE_MS = 25;
/** A notification that a process sends itself and does not hear in this time will not be heard. */
const HEARING_MS_MAX = 2_000;
const TEST = "test";

/**
 * Calls `onHead` with how far the log goes, now and whenever it went on, until the function that it answers is called.
 * What is looked up counts; notifications are hints to look, of which any may be lost, or be anybody's.
 */
export function watchHead(
  url: string,
  storeId: string,
  lastPosition: () => Promise<number>,
  onHead: (position: number) => void,
  pollMs: number = POLL_MS,
): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  let pause = new AbortController();

  async function poll(): Promise<void> {
    while (!signal.aborted) {
      // A hint that comes during the look is not of what it saw.
      pause = new AbortController();
      // While the database is away nothing is appended either.
      const position = await lastPosition().catch(() => 0);
      if (!signal.aborted) onHead(position);
      await delay(pollMs, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  }

  async function listen(): Promise<void> {
    const listener = openDatabase({ url, connections: 1, name: "eventstore-lite listener" });
    signal.addEventListener("abort", () => void listener.close(), { once: true });
    const heard = Promise.withResolvers<void>();
    const channel = channelOf(storeId);
    await listener.run((sql) =>
      sql.listen(
        channel,
        (payload) => {
          if (payload === TEST) heard.resolve();
          else pause.abort();
        },
        () => void sql`SELECT pg_notify(${channel}, ${TEST})`.catch(() => undefined),
      ),
    );
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(HEARING_MS_MAX)]);
    await Promise.race([heard.promise, new Promise((_, reject) => timeout.addEventListener("abort", reject))]);
  }

  void poll();
  listen().catch(() => {
    pollMs = POLL_ALONE_MS;
  });
  return () => {
    ended.abort();
    pause.abort();
  };
}
