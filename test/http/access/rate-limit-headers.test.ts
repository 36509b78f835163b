// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { setRateLimitHeaders } from "../../../src/http/access/rate-limit.ts";
import type { Triggered } from "../../../src/outreach/start-run.ts";
import { ask, openApp, post, REPORT, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const callFrom = (world: AppHarness, address: string): void => {
  const server = { pendingRequests: 1, requestIP: () => ({ address }), timeout() {} };
  Object.assign(world.app, { server });
};

const limitsOf = ({ headers }: Response) => [headers.get("ratelimit-policy"), headers.get("ratelimit")];

test("an unauthenticated caller sees its remaining requests with each response", async () => {
  await using world = await openApp({ rateLimitPerMinute: 2 });
  callFrom(world, "203.0.113.9");
  const policy = '"anonymous";q=2;w=60';
  const answers = [await ask(world.app, "/social/health"), await ask(world.app, "/social/me")];
  expect(answers.map(limitsOf)).toEqual([
    [policy, '"anonymous";r=1;t=60'],
    [policy, '"anonymous";r=0;t=60'],
  ]);
  world.now += 15_000;
  const refused = await ask(world.app, "/social/health");
  expect([limitsOf(refused), refused.headers.get("retry-after")]).toEqual([[policy, '"anonymous";r=0;t=45'], "45"]);
  expect(await problemIn(refused)).toBe("429 too-many-requests");
});

test("a caller with a token or on this machine has no such limit", async () => {
  await using world = await openApp();
  callFrom(world, "203.0.113.9");
  expect(limitsOf(await ask(world.app, "/social/health", { token: TOKEN }))).toEqual([null, null]);
  callFrom(world, "127.0.0.1");
  expect(limitsOf(await ask(world.app, "/social/health"))).toEqual([null, null]);
});

test("the response of a run shows the daily quota and the limit of the address", async () => {
  await using world = await openApp();
  await world.authorize();
  callFrom(world, "203.0.113.9");
  const answer = await post(world.app, "/social/run", {});
  expect(limitsOf(answer)).toEqual([
    '"anonymous";q=600;w=60, "dm-day";q=100;w=86400',
    '"anonymous";r=599;t=60, "dm-day";r=37;t=57600',
  ]);
});

test("a repeated limit replaces its former value and keeps the others", () => {
  const headers: Record<string, string> = {};
  const quota = { limit: 9, windowSeconds: 60, left: 9, seconds: 60 };
  setRateLimitHeaders(headers, "a", quota);
  setRateLimitHeaders(headers, "b", quota);
  quota.left -= 4;
  setRateLimitHeaders(headers, "b", quota);
  setRateLimitHeaders(headers, "a", quota);
  expect(headers["ratelimit"]).toBe('"b";r=5;t=60, "a";r=5;t=60');
});

test("a started run shows the remaining quota after it, a refused one the quota before it", async () => {
  await using world = await openApp();
  await world.authorize();
  const runThat = (kind: "started" | "daily_limit_reached"): Triggered => {
    world.used += 4;
    return kind === "started" ? { kind, run_id: "run-1", done: Promise.resolve(REPORT) } : { kind };
  };
  for (const [kind, left] of [
    ["started", '"dm-day";r=33;t=57600'],
    ["daily_limit_reached", '"dm-day";r=33;t=57600'],
  ] as const) {
    Object.defineProperty(world, "triggered", { get: () => runThat(kind), configurable: true });
    expect(limitsOf(await post(world.app, "/social/run", {}))[1]).toBe(left);
  }
});
