import { expect, test } from "bun:test";
import { setImmediate } from "node:timers/promises";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newEvents, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { openDatabase } from "../../src/postgres/database.ts";
import { createNotifier, type Notifier } from "../../src/postgres/notify-after-append.ts";
import { watchHead } from "../../src/postgres/watch-head.ts";
import { startProxy } from "../../src/testing/faulty-postgres-proxy.ts";
import { newDatabase, startPostgres } from "../../src/testing/postgres-server.ts";

/**
 * Resolves once the watcher heard a notification of `position`. A notification may be lost, so it is sent until it is
 * heard.
 */
async function hear(notifier: Notifier, heard: Promise<void>, position: number): Promise<void> {
  const again = setInterval(() => notifier.notify(position), 20);
  await heard;
  clearInterval(again);
}

const NEVER_MS = 3_600_000;

test("a notification triggers a look at the head, even after an outage", async () => {
  await using server = await startPostgres();
  const url = await server.newDatabase();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let head = 6;
  const onHead = (position: number): void => {
    if (position === 7) first.resolve();
    if (position === 8) second.resolve();
  };
  const stop = watchHead(url, "log", async () => head, onHead, NEVER_MS);
  const notifier = createNotifier(url, "log");
  head = 7;
  await hear(notifier, first.promise, 7);
  await server.stop("immediate");
  await server.start();
  head = 8;
  await hear(notifier, second.promise, 8);
  stop();
  await notifier.close();
});

test("the position in a forged notification is not trusted", async () => {
  const url = await newDatabase();
  await using store = await openPostgresStore({ url });
  await using other = await openPostgresStore({ url });
  const followed = take(store.subscribe({ from: 1, signal: new AbortController().signal }), 2);
  const forger = createNotifier(url, store.id);
  const looked = Promise.withResolvers<void>();
  let forged = 0;
  const stop = watchHead(
    url,
    store.id,
    async () => (forged += 1),
    (count) => count > 2 && looked.resolve(),
    NEVER_MS,
  );
  await hear(forger, looked.promise, 1_000_000);
  await other.append("a", newEvents(2));
  expect((await followed).map(({ position }) => position)).toEqual([1, 2]);
  stop();
  await forger.close();
});

test("appends of other stores are followed even if notifications do not arrive", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  proxy.decide(({ from, type }) => (from === "server" && type === "A" ? "lose" : "pass"));
  await using store = await openPostgresStore({ url: proxy.url });
  await using other = await openPostgresStore({ url });
  const followed = take(store.subscribe({ from: 1, signal: new AbortController().signal }), 6);
  for (let count = 0; count < 3; count += 1) await other.append("a", newEvents(2));
  expect((await followed).map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6]);
});

test("no work begins over a connection made while the database closes", async () => {
  const url = await newDatabase();
  let late = 0;
  for (let attempt = 0; attempt < 100; attempt++) {
    const database = openDatabase({ url, connections: 1, name: "test" });
    let isClosed = false;
    const running = database.run(async () => {
      if (isClosed) late++;
    });
    const ended = running.catch(() => undefined);
    // The first attempts close the database before the connection is made, and the last ones after it.
    const closesAt = performance.now() + attempt / 8;
    while (performance.now() < closesAt) await setImmediate();
    isClosed = true;
    await database.close();
    await ended;
  }
  expect(late).toBe(0);
});
