// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createLoadShedding } from "../../../src/http/access/limit-requests-and-streams.ts";
import { Problem } from "../../../src/http/server/problem.ts";
import { ask, GOOD, openApp, post, problemIn } from "../../harness/in-process/app.ts";

const refusal = (act: () => void): unknown => {
  try {
    act();
  } catch (fault) {
    return fault instanceof Problem ? fault.slug : fault;
  }
  return undefined;
};

/** Fake HTTP server that reports this number of requests in flight. */
const busyWith = (pendingRequests: number) => ({
  pendingRequests,
  requestIP: () => ({ address: "127.0.0.1" }),
  timeout() {},
});

test("requests beyond the limit of concurrent ones are refused", () => {
  const load = createLoadShedding(2);
  expect([refusal(() => load.admit(2)), refusal(() => load.admit(3))]).toEqual([undefined, "overloaded"]);
});

test("a request with an incomplete or failed upload does not count toward the limit", async () => {
  const load = createLoadShedding(2);
  const body = Promise.withResolvers<void>();
  const broken = Promise.withResolvers<void>();
  const read = load.whileComing(body.promise);
  const failed = load.whileComing(broken.promise).catch(() => "failed");
  expect([load.coming, refusal(() => load.admit(4)), refusal(() => load.admit(5))]).toEqual([
    2,
    undefined,
    "overloaded",
  ]);
  body.resolve();
  broken.reject(new Error("hung up"));
  expect([await read, await failed]).toEqual([undefined, "failed"]);
  expect([load.coming, refusal(() => load.admit(3))]).toEqual([0, "overloaded"]);
});

test("an overloaded service refuses a click with Retry-After, and still answers health", async () => {
  await using world = await openApp();
  Object.assign(world.app, { server: busyWith(1_000_000) });
  const answer = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"]);
  expect([answer.headers.get("retry-after"), await problemIn(answer)]).toEqual(["5", "503 overloaded"]);
  expect((await ask(world.app, "/social/health")).status).toBe(200);
  expect((await ask(world.app, "/api/health")).status).toBe(200);
  expect(await world.events("LinkClicked")).toEqual([]);
});

test("an event stream that is closed twice frees one place", () => {
  const load = createLoadShedding(2);
  const [close] = [load.openStream("ann"), load.openStream("ann")];
  close();
  close();
  expect(load.streams).toBe(1);
});

test("a list waits for the slot as long as it may, in the order of arrival, and no longer than its caller", async () => {
  const load = createLoadShedding();
  const { signal } = new AbortController();
  const first = Promise.withResolvers<string>();
  const order: string[] = [];
  const take = (name: string, wait?: { readonly ms: number; readonly signal: AbortSignal }) =>
    load
      .whileTaking(async () => order.push(name), wait)
      .then(
        () => "taken",
        (fault: unknown) => (fault instanceof Problem ? fault.slug : fault),
      );
  const reading = load.whileTaking(() => first.promise);
  const client = new AbortController();
  const left = take("left", { ms: 60_000, signal: client.signal });
  const waiting = [take("second", { ms: 60_000, signal }), take("third", { ms: 60_000, signal })];
  expect(await take("impatient")).toBe("overloaded");
  expect(await take("late", { ms: 1, signal })).toBe("overloaded");
  client.abort();
  expect([await left, await take("gone", { ms: 60_000, signal: client.signal })]).toEqual(["overloaded", "overloaded"]);
  first.resolve("read");
  expect([await reading, ...(await Promise.all(waiting))]).toEqual(["read", "taken", "taken"]);
  expect([order, load.isTaking]).toEqual([["second", "third"], false]);
  expect(await take("next")).toBe("taken");
});

test("at most eight lists wait for the slot, because each may be large", async () => {
  const load = createLoadShedding();
  const { signal } = new AbortController();
  const first = Promise.withResolvers<void>();
  const reading = load.whileTaking(() => first.promise);
  const wait = { ms: 60_000, signal };
  const waiting = Array.from({ length: 8 }, () => load.whileTaking(async () => "taken", wait));
  const refused = await load.whileTaking(async () => "taken", wait).catch((fault: unknown) => fault);
  expect(refused).toMatchObject({ slug: "overloaded" });
  first.resolve();
  await reading;
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["taken"]));
});
