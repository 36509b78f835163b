// On the memory harness.
import { expect, test } from "bun:test";
import { StoreUnavailable } from "eventstore-lite";
import { BEHIND_MAX } from "../../../src/http/features/health.ts";
import { openApp, type AppHarness } from "../../harness/memory/app.ts";

async function probed({ app }: Pick<AppHarness, "app">, path: string): Promise<unknown> {
  const response = await app.handle(new Request(`http://localhost${path}`, { headers: { host: "localhost" } }));
  return [response.status, await response.json()];
}

/** Identifies the log to callers who know its id, and to no others. */
const LOG: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);

const WELL = { running: true, log_writable: true, projections_caught_up: true };

test("a service that is well is alive and ready", async () => {
  await using world = await openApp();
  expect(await probed(world, "/livez")).toEqual([200, { status: "ok" }]);
  expect(await probed(world, "/readyz")).toEqual([200, { status: "ok", checks: WELL, log: LOG }]);
});

test("one whose log takes nothing is alive, and not ready", async () => {
  await using world = await openApp({ isWritable: false });
  expect(await probed(world, "/livez")).toEqual([200, { status: "ok" }]);
  const checks = { ...WELL, log_writable: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("one that is about to stop is not ready", async () => {
  await using world = await openApp({ stopping: AbortSignal.abort() });
  const checks = { ...WELL, running: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("one whose projections are too far behind the log is not ready", async () => {
  let head = BEHIND_MAX;
  await using world = await openApp({
    store: (store) => ({ ...store, head: async () => ({ position: head, hash: "", time: undefined }) }),
  });
  expect(await probed(world, "/readyz")).toEqual([200, { status: "ok", checks: WELL, log: LOG }]);
  head++;
  const checks = { ...WELL, projections_caught_up: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("one whose log is out of reach is not ready, and says so check by check", async () => {
  const away = () => Promise.reject(new StoreUnavailable(new Error("no route to the server")));
  await using world = await openApp({ isWritable: false, store: (store) => ({ ...store, head: away }) });
  const checks = { ...WELL, log_writable: false, projections_caught_up: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});
