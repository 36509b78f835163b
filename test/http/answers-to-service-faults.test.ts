// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { StoreClosed } from "eventstore-lite";
import { AppendInDoubt, StoreFull, StoreOverloaded } from "eventstore-lite/testing";
import { SocialError } from "../../src/networks/network.ts";
import { ServiceError, type ErrorKind } from "../../src/platform/service-error.ts";
import { createApp } from "../../src/http/app.ts";
import { toProblem } from "../../src/http/server/problem.ts";
import { ask, GOOD, openApp, post, problemIn, TOKEN } from "../harness/in-process/app.ts";

const CANARY = "canary-4711";

/** Opens an app whose log refuses every append with `fault`. */
const failing = (fault: Error) => openApp({ store: (store) => ({ ...store, append: () => Promise.reject(fault) }) });

const POSTS = ["/api/notify", "/api/tracking/event", "/api/tracking/test", "/api/messaging"] as const;

test.each([
  [new StoreFull(), "503 log-unavailable", "5"],
  [new StoreOverloaded(), "503 log-unavailable", "5"],
  [new StoreClosed(), "503 log-unavailable", "5"],
  // This append may have been recorded, so the answer must not invite the caller to repeat the request.
  [new AppendInDoubt(new Error(CANARY)), "503 log-in-doubt", null],
])("every POST during a log failure (%s) is answered with %s", async (fault, problem, seconds) => {
  await using world = await failing(fault);
  for (const path of POSTS) {
    for (const headers of [{}, { "idempotency-key": "k-1" }]) {
      const response = await post(world.app, path, GOOD[path], { token: TOKEN, headers });
      expect([path, response.headers.get("retry-after"), await problemIn(response)]).toEqual([path, seconds, problem]);
    }
  }
});

test("an internal fault is logged in full and answered with a 500 without details", async () => {
  await using world = await failing(new Error(CANARY));
  for (const path of POSTS) {
    const response = await post(world.app, path, GOOD[path], { token: TOKEN });
    const id = response.headers.get("x-request-id") ?? "";
    const body = await response.text();
    expect([response.status, body.includes(CANARY), body.includes("Error:")]).toEqual([500, false, false]);
    expect(Object.values(Object.fromEntries(response.headers)).join()).not.toContain(CANARY);
    const line = world.logged.find((entry) => entry.includes(id));
    expect(line).toStartWith('["error",');
    expect(line).toContain(CANARY);
    expect(line).toContain(path);
    expect(line).toContain(`"trace_id":"${response.headers.get("traceparent")?.split("-")[1]}"`);
  }
});

test("a fault while the log is read is answered with a 500 without details", async () => {
  await using world = await openApp({
    tokens: false,
    store: (store) => ({
      ...store,
      read: () => {
        throw new TypeError(CANARY);
      },
    }),
  });
  await world.append("requests", { type: "MessageRequested", data: { text: "hello" } });
  const response = await ask(world.app, "/");
  expect(await response.clone().text()).not.toContain(CANARY);
  expect(await problemIn(response)).toBe("500 internal-error");
});

test.each([
  ["unauthorized", "not-authorized", 401],
  ["unavailable", "network-failed", 502],
  ["rate_limited", "network-failed", 502],
  ["rejected", "network-failed", 502],
  ["stopped", "network-failed", 502],
] as const)("a network's error %s becomes the problem %s", (kind, slug, status) => {
  expect(toProblem(new SocialError(kind, "told so"))).toMatchObject({ slug, status });
});

const STATUS: Readonly<Record<ErrorKind, number | undefined>> = {
  usage: undefined,
  configuration: undefined,
  damaged: undefined,
  invalid: undefined,
  not_found: undefined,
  conflict: 422,
  busy: 503,
  overloaded: 503,
  full: 503,
  closed: 503,
  in_doubt: 503,
  unavailable: 502,
  rate_limited: 502,
  unauthorized: 401,
  rejected: 502,
  stopped: 502,
};

test.each(Object.entries(STATUS) as [ErrorKind, number | undefined][])(
  "an error of the kind %s has the status %p",
  (kind, status) => {
    expect(toProblem(new ServiceError(kind, "told so"))?.status).toBe(status as number);
  },
);

test("any other thrown value becomes no problem", () => {
  for (const fault of [new Error(CANARY), "thrown text", undefined, null, { status: 200 }]) {
    expect(toProblem(fault)).toBeUndefined();
  }
});

test.each([
  ["/people/@sara_sells", "/people/:id"],
  ["/people/sara_sells?before=sara_sells", "/people/:id"],
  ["/people?search=sara_sells", "/people"],
])("a fault at %s is logged with the path %s, which names no recipient", async (path, template) => {
  await using world = await openApp({ tokens: false });
  const console: typeof world.deps.console = {
    ...world.deps.console,
    render: () => Promise.reject(new TypeError(CANARY)),
  };
  const app = createApp({ ...world.deps, console });
  expect(await problemIn(await ask(app, path))).toBe("500 internal-error");
  const lines = world.logged.join();
  expect(lines).toContain(`"path":"${template}"`);
  expect(lines).not.toContain("sara_sells");
});
