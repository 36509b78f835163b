// On the memory harness.
import { expect, test } from "bun:test";
import { StoreFull, StoreUnavailable, type EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { ask, GOOD, openApp, post, TOKEN } from "../../harness/memory/app.ts";

/** A log on a disk that can be full. */
function onDisk(disk: { isFull: boolean }): (store: EventStore<Event>) => EventStore<Event> {
  return (store) => ({
    ...store,
    append: (...args) => (disk.isFull ? Promise.reject(new StoreFull()) : store.append(...args)),
    snapshots: {
      ...store.snapshots,
      save: (...args) => (disk.isFull ? Promise.reject(new StoreFull()) : store.snapshots.save(...args)),
    },
  });
}

const POSTS = ["/api/notify", "/api/tracking/event", "/api/tracking/test", "/api/messaging"] as const;

test.each(POSTS)("a full disk that %s meets: health is degraded, and ok again once there is room", async (path) => {
  const disk = { isFull: false };
  await using world = await openApp({ store: onDisk(disk) });
  const send = () => post(world.app, path, GOOD[path], { token: TOKEN });
  const health = async (): Promise<unknown[]> => {
    const answer = await world.app.handle(
      new Request("http://localhost/api/health", { headers: { host: "localhost" } }),
    );
    expect(answer.headers.get("retry-after")).toBe(answer.ok ? null : "5");
    return [answer.status, ((await answer.json()) as { status: string }).status];
  };
  expect(await health()).toEqual([200, "ok"]);
  disk.isFull = true;
  const refused = await send();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await health()).toEqual([503, "degraded"]);
  expect(await health()).toEqual([503, "degraded"]);
  expect((await ask(world.app, "/social/stats")).status).toBe(200);
  // Nobody has to post first: an idle service recovers too.
  disk.isFull = false;
  expect(await health()).toEqual([200, "ok"]);
  expect((await send()).ok).toBe(true);
});

const READS = ["/api/audit/head", "/api/audit/export", "/api/audit/proof/1"];

test.each(READS)("a log out of reach: %s is refused, and says when to ask again", async (path) => {
  let isAway = false;
  const away = () => Promise.reject(new StoreUnavailable("the log does not answer"));
  await using world = await openApp({
    store: (store) => ({
      ...store,
      append: (...args) => (isAway ? away() : store.append(...args)),
      head: () => (isAway ? away() : store.head()),
      now: () => (isAway ? away() : store.now()),
      snapshots: { ...store.snapshots, save: (...args) => (isAway ? away() : store.snapshots.save(...args)) },
    }),
  });
  expect((await post(world.app, "/api/notify", GOOD["/api/notify"], { token: TOKEN })).ok).toBe(true);
  expect((await ask(world.app, path, { token: TOKEN })).status).toBe(200);
  isAway = true;
  const refused = await ask(world.app, path, { token: TOKEN });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
});
