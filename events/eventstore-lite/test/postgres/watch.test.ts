import { expect, test } from "bun:test";
import { openPostgresStore } from "eventstore-lite";
import { newEvents, take } from "../../src/contract/events.ts";
import { createNotifier, type Notifier } from "../../src/postgres/notifications.ts";
import { watchHead } from "../../src/postgres/watch.ts";
import { startProxy } from "./proxy.ts";
import { newDatabase, startPostgres } from "../../testing/postgres-server.ts";

/** Resolves once a notification of `position` was heard: any one may be lost, so it is sent until then. */
async function hear(notifier: Notifier, heard: Promise<void>, position: number): Promise<void> {
  const again = setInterval(() => notifier.notify(position), 20);
  await heard;
  clearInterval(again);
}

test("a notification tells of the head where a look does not, after an outage of the server too", async () => {
  await using server = await startPostgres();
  const url = await server.newDatabase();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const looks = Promise.withResolvers<void>();
  let isAway = false;
  const look = (): Promise<number> => {
    if (!isAway) return Promise.resolve(1);
    looks.resolve();
    return Promise.reject(new Error("away"));
  };
  const stop = watchHead(url, "log", look, (position) => {
    if (position === 7) first.resolve();
    if (position === 8) second.resolve();
  });
  const notifier = createNotifier(url, "log");
  await hear(notifier, first.promise, 7);
  isAway = true;
  await server.stop("immediate");
  await looks.promise;
  await server.start();
  isAway = false;
  await hear(notifier, second.promise, 8);
  stop();
  await notifier.close();
});

test("where notifications do not arrive, as behind a pool, what others append is followed all the same", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  proxy.decide(({ from, type }) => (from === "server" && type === "A" ? "lose" : "pass"));
  await using store = await openPostgresStore({ url: proxy.url });
  await using other = await openPostgresStore({ url });
  const followed = take(store.subscribe({ from: 1, signal: new AbortController().signal }), 6);
  for (let count = 0; count < 3; count += 1) await other.append("a", newEvents(2));
  expect((await followed).map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6]);
});
