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
 * What is looked up counts; notifications are hints to look, of which any may be lost, or come from any program.
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
  let pauseMs = pollMs;
  const listener = openDatabase({ url, connections: 1, name: "eventstore-lite listener" });

  async function poll(): Promise<void> {
    while (!signal.aborted) {
      // A hint that comes during the look is not of what it saw.
      pause = new AbortController();
      // While the database is away nothing is appended either.
      const position = await lastPosition().catch(() => undefined);
      // The server that is found again may be another one.
      if (position !== undefined && listener.hasLost()) void listen();
      if (!signal.aborted) onHead(position ?? 0);
      await delay(pauseMs, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  }

  async function listen(): Promise<void> {
    pauseMs = (await hears()) ? pollMs : POLL_ALONE_MS;
  }

  /** Has the listener interrupt pauses. Answers whether notifications arrive. */
  async function hears(): Promise<boolean> {
    const heard = Promise.withResolvers<boolean>();
    const channel = channelOf(storeId);
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(HEARING_MS_MAX)]);
    timeout.addEventListener("abort", () => heard.resolve(false), { once: true });
    const listening = listener.run((sql) =>
      sql.listen(
        channel,
        (payload) => {
          if (payload === TEST) heard.resolve(true);
          else pause.abort();
        },
        () => void sql`SELECT pg_notify(${channel}, ${TEST})`.catch(() => undefined),
      ),
    );
    listening.catch(() => heard.resolve(false));
    return heard.promise;
  }

  void poll();
  void listen();
  return () => {
    ended.abort();
    pause.abort();
    void listener.close();
  };
}
