// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { StoreUnavailable } from "eventstore-lite/testing";
import { BEHIND_MAX } from "../../../src/http/features/health-probes-and-metrics.ts";
import { openApp, type AppHarness } from "../../harness/in-process/app.ts";

async function probed({ app }: Pick<AppHarness, "app">, path: string): Promise<unknown> {
  const response = await app.handle(new Request(`http://localhost${path}`, { headers: { host: "localhost" } }));
  return [response.status, await response.json()];
}

/**
 * Matches the fingerprint of the log in a readiness answer. Only a caller who knows the log's id can tell from it which
 * log it is.
 */
const LOG: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);

const WELL = { running: true, log_writable: true, projections_caught_up: true };

test("a healthy service is alive and ready", async () => {
  await using world = await openApp();
  expect(await probed(world, "/livez")).toEqual([200, { status: "ok" }]);
  expect(await probed(world, "/readyz")).toEqual([200, { status: "ok", checks: WELL, log: LOG }]);
});

test("a service with a log that refuses appends is alive but not ready", async () => {
  await using world = await openApp({ isWritable: false });
  expect(await probed(world, "/livez")).toEqual([200, { status: "ok" }]);
  const checks = { ...WELL, log_writable: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("a stopping service is not ready", async () => {
  await using world = await openApp({ stopping: AbortSignal.abort() });
  const checks = { ...WELL, running: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("a service with projections too far behind the log is not ready", async () => {
  let head = BEHIND_MAX;
  await using world = await openApp({
    store: (store) => ({ ...store, head: async () => ({ position: head, hash: "", time: undefined }) }),
  });
  expect(await probed(world, "/readyz")).toEqual([200, { status: "ok", checks: WELL, log: LOG }]);
  head++;
  const checks = { ...WELL, projections_caught_up: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});

test("a service that cannot reach its log is not ready, and names the failed checks", async () => {
  const away = () => Promise.reject(new StoreUnavailable(new Error("no route to the server")));
  await using world = await openApp({ isWritable: false, store: (store) => ({ ...store, head: away }) });
  const checks = { ...WELL, log_writable: false, projections_caught_up: false };
  expect(await probed(world, "/readyz")).toEqual([503, { status: "unavailable", checks, log: LOG }]);
});
