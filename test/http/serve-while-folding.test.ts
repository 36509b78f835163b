// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { createDelivery } from "../../src/delivery/wait-for-outcome.ts";
import { gateFolds } from "../harness/in-process/gated-folds.ts";
import { ask, GOOD, openApp, post, problemIn, TOKEN } from "../harness/in-process/app.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

/** Opens an app that has just started, so that none of its projections is folded. `fold` lets it fold the whole log. */
async function openStarted(more: Parameters<typeof openApp>[0] = {}) {
  let gate: ReturnType<typeof gateFolds> | undefined;
  const world = await openApp({
    ...more,
    before: [{ type: "RunStarted", data: { run_id: "run-1", dry_run: false } }, clickOf({}), clickOf({})],
    lateAfter: 0,
    followed: (store) => (gate = gateFolds(store)).store,
  });
  return {
    ...world,
    async fold() {
      gate?.let(Infinity);
      await world.projector.folded(PROJECTION_NAMES);
    },
    [Symbol.asyncDispose]: async () => {
      gate?.let(Infinity);
      await world[Symbol.asyncDispose]();
    },
  };
}

test("clicks are recorded before any projection is folded, once per idempotency key", async () => {
  await using world = await openStarted();
  const headers = { "idempotency-key": "k-1" };
  const first = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"], { token: TOKEN, headers });
  const repeated = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"], { token: TOKEN, headers });
  expect([first.status, repeated.status, await repeated.json()]).toEqual([202, 202, await first.json()]);
  expect(await Array.fromAsync(world.store.read({ types: ["LinkClicked"] }))).toHaveLength(3);
});

test("a click on an unknown link records its visitor only until the links are folded", async () => {
  await using world = await openStarted();
  const recorded = async () => {
    await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"], { token: TOKEN });
    const [event] = await Array.fromAsync(world.store.read({ types: ["LinkClicked"], backwards: true, limit: 1 }));
    return event?.type === "LinkClicked" && event.data.visitor !== undefined;
  };
  expect(await recorded()).toBe(true);
  await world.fold();
  expect(await recorded()).toBe(false);
});

const PERSONAL = { ...GOOD["/api/tracking/event"], short_code: "abcdefghijkmn" };

test.each([
  ["POST", "/social/run", {}],
  ["GET", "/social/health", undefined],
  ["GET", "/social/stats", undefined],
  ["GET", "/social/results", undefined],
  ["GET", "/social/suppressions", undefined],
  ["POST", "/social/recipients/suppress", { recipient: "@sara_sells" }],
  ["POST", "/social/recipients/forget", { recipient: "@sara_sells" }],
  ["POST", "/api/tracking/event", PERSONAL],
] as const)("%s %s is refused with the progress of folding, and served after it", async (method, path, body) => {
  await using world = await openStarted();
  const { position } = await world.store.head();
  const refused = await ask(world.app, path, { method, token: TOKEN, body });
  expect(refused.headers.get("retry-after")).toBe("5");
  expect(await refused.clone().json()).toMatchObject({
    type: "urn:reachlog:problem:projection-folding",
    detail: expect.stringMatching(/^The projection [a-z]+ is being folded from the log: 0 % done\. Try again later\.$/),
  });
  expect((await world.store.head()).position).toBe(position);
  await world.fold();
  const answered = await ask(world.app, path, { method, token: TOKEN, body });
  expect(answered.status).not.toBe(503);
});

test("a redirect is refused until the links are folded", async () => {
  await using world = await openStarted({ redirects: "before" });
  expect(await problemIn(await ask(world.app, "/l/spring"))).toBe("503 projection-folding");
  await world.fold();
  expect((await ask(world.app, "/l/spring")).status).toBe(404);
});

test("waiting for a delivery ends at once while the deliveries are not folded", async () => {
  await using world = await openStarted();
  const delivery = createDelivery(world.deps, []);
  expect(await delivery.settled("chat", 1, 3_600_000)).toBeUndefined();
});

test("pages show the progress of folding in a sentence", async () => {
  await using world = await openStarted({ tokens: false });
  for (const path of ["/", "/people", "/links", "/deliveries", "/results"]) {
    const page = await ask(world.app, path, { headers: { accept: "text/html" } });
    expect([path, page.status, page.headers.get("retry-after")]).toEqual([path, 503, "5"]);
    expect(await page.text()).toContain("is reading the event log for this page: 0 % is done. Clicks are recorded");
  }
  await world.fold();
  expect((await ask(world.app, "/links", { headers: { accept: "text/html" } })).status).toBe(200);
});

test("the service is ready but degraded, and reports the progress of each projection", async () => {
  await using world = await openStarted();
  const ready = await ask(world.app, "/readyz");
  const folding = Object.fromEntries(PROJECTION_NAMES.map((name) => [name, 0]));
  expect([ready.status, await ready.json()]).toMatchObject([200, { status: "ok", folding }]);
  const health = await ask(world.app, "/api/health");
  const told = (await health.json()) as Record<string, unknown>;
  expect([health.status, told["status"], told["folding"], told["channels"]]).toEqual([
    200,
    "degraded",
    folding,
    undefined,
  ]);
  const metrics = async () => (await ask(world.app, "/metrics", { token: TOKEN })).text();
  expect(await metrics()).toContain('reachlog_projection_folded_ratio{projection="visits"} 0\n');
  await world.fold();
  expect(await (await ask(world.app, "/readyz")).json()).not.toHaveProperty("folding");
  expect(await (await ask(world.app, "/api/health")).json()).toMatchObject({ status: "ok", channels: {} });
  expect(await metrics()).toContain('reachlog_projection_folded_ratio{projection="visits"} 1\n');
});
