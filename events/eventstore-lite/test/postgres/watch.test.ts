import { expect, test } from "bun:test";
import { openPostgresStore } from "eventstore-lite";
import { newEvents, take } from "../../src/contract/events.ts";
import { createNotifier } from "../../src/postgres/notifications.ts";
import { watchHead } from "../../src/postgres/watch.ts";
import { startProxy } from "./proxy.ts";
import { newDatabase } from "../../testing/postgres-server.ts";

test("a notification tells of the head where a look does not", async () => {
  const url = await newDatabase();
  const heard = Promise.withResolvers<void>();
  const stop = watchHead(
    url,
    "log",
    () => Promise.resolve(1),
    (position) => {
      if (position === 7) heard.resolve();
    },
  );
  const notifier = createNotifier(url, "log");
  const other = createNotifier(url, "other log");
  // The watcher listens at some later time: a notification that nobody hears is lost.
  const again = setInterval(() => {
    notifier.notify(7);
    other.notify(8);
  }, 20);
  await heard.promise;
  clearInterval(again);
  stop();
  await Promise.all([notifier.close(), other.close()]);
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
