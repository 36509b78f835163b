import { setTimeout as delay } from "node:timers/promises";
import { openDatabase } from "./database.ts";
import { channelOf } from "./notify-after-append.ts";

/**
 * Interval in ms between two reads of the log's last position. If no notification arrives, an append by another process
 * is noticed at most this much later.
 */
const POLL_MS = 100;
/**
 * Interval in ms between two looks at the log's end if notifications do not reach this process, for example behind a
 * pool that gives each transaction another connection.
 */
const POLL_ALONE_MS = 25;
/**
 * Time within which a process must hear a notification that it sends itself; otherwise notifications do not reach it.
 */
const HEARING_MS_MAX = 2_000;
const TEST = "test";

/**
 * Calls `onHead` with the log's last position, now and whenever it grows, until the returned function is called. A
 * notification only triggers a read of the position, because notifications may be lost, or come from any program.
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
      // The pause is created before the position is read, so that a notification that arrives during the read shortens
      // it: it may be about a later append.
      pause = new AbortController();
      // While the database is away, no process can append, so nothing is missed.
      const position = await lastPosition().catch(() => undefined);
      // The listener's connection was lost, so it subscribes on the server that accepts writes now.
      if (position !== undefined && listener.hasLost()) void listen();
      if (!signal.aborted) onHead(position ?? 0);
      await delay(pauseMs, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  }

  async function listen(): Promise<void> {
    pauseMs = (await hears()) ? pollMs : POLL_ALONE_MS;
  }

  /**
   * Subscribes to notifications, each of which ends the pause between two polls. Resolves with true if a test
   * notification arrives, false if none does, for example behind a connection pool.
   */
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
