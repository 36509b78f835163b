// On the memory harness.
import { expect, test } from "bun:test";
import { StoreFull, type EventStore } from "eventstore-lite";
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
