// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { StoreClosed } from "eventstore-lite";
import { AppendInDoubt, StoreFull, StoreOverloaded } from "eventstore-lite/testing";
import type { RunEnd } from "../../../events/outreach.ts";
import type { Settlement } from "../../../src/delivery/wait-for-outcome.ts";
import { createApp, type App } from "../../../src/http/app.ts";
import { createIdempotency } from "../../../src/http/server/idempotency.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { sleep } from "../../../src/platform/clock-ids-and-timers.ts";
import {
  ask,
  GOOD,
  openApp,
  post,
  REPORT,
  problemIn,
  TOKEN,
  type AppHarness,
  type Ask,
  type Given,
} from "../../harness/in-process/app.ts";

const TRACK = "/api/tracking/event";
const keyed = (key: string, more: Ask = {}): Ask => ({ ...more, headers: { "idempotency-key": key, ...more.headers } });

test("a repeat with the same key returns the first response and records nothing", async () => {
  await using world = await openApp();
  const send = () => post(world.app, TRACK, GOOD[TRACK], keyed("k-1"));
  const [first, again] = [await send(), await send()];
  expect([again.status, again.headers.get("content-type")]).toEqual([202, first.headers.get("content-type")]);
  expect([first, again].map(({ headers }) => headers.get("cache-control"))).toEqual(["no-store", "no-store"]);
  expect(await again.text()).toBe(await first.text());
  expect(await world.events("LinkClicked")).toHaveLength(1);
});

test("a repeat after a restart returns the first response", async () => {
  await using world = await openApp();
  const first = await post(world.app, TRACK, GOOD[TRACK], keyed("k-1"));
  const again = await post(world.restart(), TRACK, GOOD[TRACK], keyed("k-1"));
  expect(await again.text()).toBe(await first.text());
  expect(await world.events("LinkClicked")).toHaveLength(1);
});

test("a repeated click is answered from its event, or with 503 while the log is full", async () => {
  let isFull = false;
  await using world = await openApp({
    store: (store) => ({
      ...store,
      append: (...args) => (isFull ? Promise.reject(new StoreFull()) : store.append(...args)),
    }),
  });
  const send = () => post(world.restart(), TRACK, GOOD[TRACK], keyed("k-1"));
  const first = await (await send()).text();
  isFull = true;
  const refused = await send();
  expect([refused.status, refused.headers.has("retry-after")]).toEqual([503, true]);
  expect(await refused.text()).not.toContain("nothing");
  isFull = false;
  expect(await (await send()).text()).toBe(first);
  expect(await world.events("RequestAnswered")).toEqual([]);
});

/**
 * Wraps a log. While `fault` returns an error, the log refuses to store answers to requests with an idempotency key,
 * and accepts all other events.
 */
function takingNoAnswers(fault: () => Error | undefined): NonNullable<Given["store"]> {
  return (store) => ({
    ...store,
    append: (stream, events, options) => {
      const refusal = stream.startsWith("answer-") ? fault() : undefined;
      return refusal === undefined ? store.append(stream, events, options) : Promise.reject(refusal);
    },
  });
}

const FAULTS = [new StoreFull(), new StoreOverloaded(), new StoreClosed(), new AppendInDoubt(null), new Error("died")];

describe.each(FAULTS)("a response that cannot be stored (%s)", (fault) => {
  const NOTIFY = "/api/notify";
  test("is still returned, because the request is recorded", async () => {
    await using world = await openApp({ store: takingNoAnswers(() => fault) });
    const answer = await post(world.app, NOTIFY, GOOD[NOTIFY], keyed("k-1"));
    const [requested] = await world.events("NotificationRequested");
    expect([answer.status, await answer.json()]).toMatchObject([200, { id: requested?.id }]);
    expect(world.logged.join("\n")).toContain("an answer was not kept");
  });

  test("is rebuilt from the log for a repeat", async () => {
    let lost: Error | undefined = fault;
    await using world = await openApp({ store: takingNoAnswers(() => lost) });
    const first = await post(world.app, NOTIFY, GOOD[NOTIFY], keyed("k-1"));
    lost = undefined;
    const again = await post(world.restart(), NOTIFY, GOOD[NOTIFY], keyed("k-1"));
    expect([again.status, await again.text()]).toEqual([200, await first.text()]);
    expect(await world.events("NotificationRequested")).toHaveLength(1);
  });

  test.each([TRACK, "/api/notify", "/api/messaging"] as const)(
    "still protects its key against another body: %s",
    async (path) => {
      let lost: Error | undefined = fault;
      await using world = await openApp({ store: takingNoAnswers(() => lost) });
      const send = (body: object) => post(world.restart(), path, body, keyed("k-1", { token: TOKEN }));
      expect((await send(GOOD[path])).status).toBeLessThan(300);
      lost = undefined;
      const [name = "", value] = Object.entries(GOOD[path])[0] ?? [];
      const other = { ...GOOD[path], [name]: `${String(value)}-other` };
      expect(await problemIn(await send(other))).toBe("422 idempotency-key-reused");
      expect((await send(GOOD[path])).status).toBeLessThan(300);
    },
  );
});

test("a repeat during a log failure gets a 503 that does not deny the first request", async () => {
  let isLost = true;
  await using world = await openApp({
    store: (store) => ({
      ...takingNoAnswers(() => (isLost ? new StoreFull() : undefined))(store),
      read: (query) => {
        if (!isLost && query?.from !== undefined) throw new StoreClosed();
        return store.read(query);
      },
    }),
  });
  await post(world.app, TRACK, GOOD[TRACK], keyed("k-1"));
  isLost = false;
  const again = await post(world.restart(), TRACK, GOOD[TRACK], keyed("k-1"));
  expect([again.status, (await again.clone().text()).includes("nothing")]).toEqual([503, false]);
  expect(await problemIn(again)).toBe("503 log-unavailable");
});

test("a recorded request is answered as pending or in doubt if the log closes mid-wait", async () => {
  await using world = await openApp();
  const delivery = { ...world.deps.delivery, settled: () => Promise.reject(new StoreClosed()) };
  const app = createApp({ ...world.deps, delivery });
  const answer = await post(app, "/api/notify", GOOD["/api/notify"]);
  const [requested] = await world.events("NotificationRequested");
  expect([answer.status, await answer.json()]).toEqual([202, { id: requested?.id, status: "pending" }]);
  const tested = await post(app, "/api/tracking/test", {}, { token: TOKEN });
  expect([tested.status, await tested.json()]).toMatchObject([200, { results: { ads: { status: "in_doubt" } } }]);
});

test.each([
  [TRACK, "LinkClicked"],
  ["/api/notify", "NotificationRequested"],
  ["/api/messaging", "MessageRequested"],
] as const)("another body under the same key is refused, also after a restart: %s", async (path, type) => {
  await using world = await openApp();
  const send = (app: App, body: object) => post(app, path, body, keyed("k-1", { token: TOKEN }));
  expect((await send(world.app, GOOD[path])).status).toBeLessThan(300);
  const [name = "", value] = Object.entries(GOOD[path])[0] ?? [];
  const other = { ...GOOD[path], [name]: `${String(value)}-other` };
  for (const app of [world.app, world.restart()]) {
    expect(await problemIn(await send(app, other))).toBe("422 idempotency-key-reused");
  }
  expect(await world.events(type)).toHaveLength(1);
});

test("parallel duplicates wait for the first; another body among them is refused", async () => {
  await using world = await openApp();
  const send = (event: string) => post(world.app, TRACK, { ...GOOD[TRACK], event }, keyed("k-1"));
  const answers = await Promise.all(["click", "click", "other", "click"].map(send));
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 422, 202]);
  const same = answers.filter(({ status }) => status === 202);
  expect(new Set(await Promise.all(same.map((response) => response.text()))).size).toBe(1);
  expect(await world.events("LinkClicked")).toHaveLength(1);
});

test("parallel duplicates at two instances are recorded once", async () => {
  await using world = await openApp();
  const apps = [world.app, world.restart(), world.app, world.restart()];
  const answers = await Promise.all(apps.map((app) => post(app, TRACK, GOOD[TRACK], keyed("k-1"))));
  expect(new Set(await Promise.all(answers.map((response) => response.text()))).size).toBe(1);
  expect(await world.events("LinkClicked")).toHaveLength(1);
});

describe("two instances that receive the same key at once", () => {
  test("return the same response, although only one saw the outcome in time", async () => {
    await using world = await openApp();
    const first = Promise.withResolvers<Settlement | undefined>();
    const slow = world.restart({ delivery: { ...world.deps.delivery, settled: () => first.promise } });
    const send = (app: App) => post(app, "/api/notify", GOOD["/api/notify"], keyed("k-1"));
    const waiting = send(slow);
    const answered = await send(world.app);
    first.resolve(undefined);
    expect([answered.status, (await waiting).status]).toEqual([200, 200]);
    expect(await (await waiting).text()).toBe(await answered.text());
    expect(await world.events("NotificationRequested")).toHaveLength(1);
    expect(await world.events("RequestAnswered")).toHaveLength(1);
  });

  test("return the first refusal, although the other one saw a delivery", async () => {
    await using world = await openApp();
    const first = Promise.withResolvers<Settlement | undefined>();
    const slow = world.restart({ delivery: { ...world.deps.delivery, settled: () => first.promise } });
    world.settlement = { status: "failed", detail: "no such channel" };
    // A problem contains the id of its request. Both requests get the same id, so that their answers can be compared.
    const headers = { "x-request-id": "request-1" };
    const send = (app: App) => post(app, "/api/notify", GOOD["/api/notify"], keyed("k-1", { headers }));
    const waiting = send(slow);
    const refused = await send(world.app);
    first.resolve({ status: "delivered", latencyMs: 1 });
    expect(await (await waiting).text()).toBe(await refused.text());
  });

  test("start one run and both wait for it", async () => {
    await using world = await openApp();
    await world.authorize();
    const done = Promise.withResolvers<typeof REPORT>();
    world.triggered = { kind: "started", run_id: "run-1", done: done.promise };
    const polled = Promise.withResolvers<void>();
    const other = world.restart({
      idempotency: createIdempotency(
        {
          ...world.deps,
          async sleep(_ms, signal) {
            polled.resolve();
            await sleep(1, signal);
          },
        },
        world.deps.stopping,
      ),
    });
    const send = (app: App) => post(app, "/social/run", {}, keyed("k-1", { headers: { prefer: "wait=60" } }));
    const first = send(world.app);
    while (world.triggers.length === 0) await new Promise(setImmediate);
    // From now on a run is in progress. Without the idempotency key, the second request would be refused.
    world.triggered = { kind: "running", run_id: "run-1" };
    const second = send(other);
    await polled.promise;
    done.resolve(REPORT);
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [one, two] = await Promise.all(answers.map((answer) => answer.text()));
    expect(two).toBe(one ?? "");
    expect(world.triggers).toHaveLength(1);
  });

  test("stop waiting when the service stops", async () => {
    await using world = await openApp();
    await world.authorize();
    world.triggered = { kind: "started", run_id: "run-1", done: new Promise(() => {}) };
    const stopping = new AbortController();
    const polled = Promise.withResolvers<void>();
    const other = world.restart({
      idempotency: createIdempotency(
        {
          ...world.deps,
          async sleep(_ms, signal) {
            polled.resolve();
            await sleep(60_000, signal);
          },
        },
        stopping.signal,
      ),
    });
    const send = (app: App) => post(app, "/social/run", {}, keyed("k-1", { headers: { prefer: "wait=1" } }));
    const first = send(world.app);
    while (world.triggers.length === 0) await new Promise(setImmediate);
    const second = send(other);
    await polled.promise;
    stopping.abort();
    expect(await problemIn(await second)).toBe("503 log-unavailable");
    await first;
  });
});

test("the same key from another caller or on another route is a different key", async () => {
  await using world = await openApp();
  await post(world.app, TRACK, GOOD[TRACK], keyed("k-1"));
  await post(world.app, TRACK, GOOD[TRACK], keyed("k-1", { token: TOKEN }));
  expect(await world.events("LinkClicked")).toHaveLength(2);
  expect((await post(world.app, "/api/notify", GOOD["/api/notify"], keyed("k-1"))).status).toBe(200);
});

test.each([
  ['"k-1"', "k-1"],
  ["k-1", '"k-1"'],
  [" k-1 ", "k-1"],
  ['"a b"', '"a b"'],
  ['"a\\"b"', '"a\\"b"'],
  [`"${"x".repeat(255)}"`, "x".repeat(255)],
])("%s is the same key as %s", async (one, other) => {
  await using world = await openApp();
  const answers = [
    await post(world.app, TRACK, GOOD[TRACK], keyed(one)),
    await post(world.app, TRACK, GOOD[TRACK], keyed(other)),
  ];
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect(await world.events("LinkClicked")).toHaveLength(1);
});

test("keys of different case are different keys", async () => {
  await using world = await openApp();
  for (const key of ["k", "K"]) await post(world.app, TRACK, GOOD[TRACK], keyed(key));
  expect(await world.events("LinkClicked")).toHaveLength(2);
});

describe("a malformed key", () => {
  let world: AppHarness;
  beforeAll(async () => {
    world = await openApp();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each(["", '""', '"', 'a"b', "a b", "a, b", '"a\\b"', "ä", "x".repeat(256), `"${"x".repeat(256)}"`])(
    "%j is refused",
    async (key) => {
      expect(await problemIn(await post(world.app, TRACK, GOOD[TRACK], keyed(key)))).toBe("400 malformed-request");
      expect(await world.events("LinkClicked")).toEqual([]);
    },
  );

  test.each([
    ['"a";p=1', "The Idempotency-Key has parameters. Send the key alone."],
    ["a; p=1", "The Idempotency-Key has parameters. Send the key alone."],
    ['"a", "b"', "The Idempotency-Key was sent more than once. Send one key."],
    ["a, b", "The Idempotency-Key was sent more than once. Send one key."],
    ["a b", "The Idempotency-Key needs 1 to 255 printable ASCII characters. Send it bare without spaces, or quoted."],
  ])("%j is refused with what is wrong", async (key, detail) => {
    expect(await (await post(world.app, TRACK, GOOD[TRACK], keyed(key))).json()).toMatchObject({ detail });
  });
});

describe("the stored response", () => {
  test("repeats a network's refusal unchanged", async () => {
    await using world = await openApp();
    world.settlement = { status: "failed", detail: "no such channel" };
    const send = () => post(world.app, "/api/notify", GOOD["/api/notify"], keyed("k-1"));
    const first = await send();
    world.settlement = { status: "delivered", latencyMs: 1 };
    const again = await ask(world.app, "/api/notify", {
      ...keyed("k-1"),
      method: "POST",
      body: GOOD["/api/notify"],
      headers: { "idempotency-key": "k-1", "x-request-id": first.headers.get("x-request-id") ?? "" },
    });
    expect([again.status, await again.text()]).toEqual([502, await first.text()]);
    expect(await world.events("NotificationRequested")).toHaveLength(1);
  });

  test("is never the refusal because a run is in progress: the same key may start a run later", async () => {
    await using world = await openApp();
    await world.authorize();
    const { triggered } = world;
    world.triggered = { kind: "running", run_id: "run-0" };
    const send = () => post(world.app, "/social/run", {}, keyed("k-1"));
    expect(await problemIn(await send())).toBe("409 run-in-progress");
    world.triggered = triggered;
    expect((await send()).status).toBe(202);
    expect((await send()).status).toBe(202);
    expect(world.triggers).toHaveLength(2);
  });

  test("is not the refusal of an invalid body", async () => {
    await using world = await openApp();
    const send = (body: unknown) => post(world.app, "/api/notify", body, keyed("k-1"));
    expect((await send({ msg: "typo" })).status).toBe(422);
    expect((await send(GOOD["/api/notify"])).status).toBe(200);
  });
});

describe("the stored response of a run", () => {
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };

  /**
   * Requests a run, appends `end` if given, and then repeats the request twice with the same idempotency key. Returns
   * the number of triggered runs and the runs in the answers to the repeats.
   */
  async function repeatAfter(end: NewEvent | undefined, prefer: Record<string, string> = {}) {
    await using world = await openApp();
    await world.authorize();
    const send = () => post(world.app, "/social/run", {}, keyed("2026-03-01", { headers: prefer }));
    await world.append("outreach", { type: "RunStarted", data: { run_id: "run-1", dry_run: false } });
    await send();
    if (end !== undefined) await world.append("outreach", end);
    const done = Promise.resolve({ ...REPORT, run_id: "run-2" });
    world.triggered = { kind: "started", run_id: "run-2", done };
    const answers = [await send(), await send()];
    const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { run_id: string }[];
    return { triggers: world.triggers.length, answered: bodies.map(({ run_id }) => run_id) };
  }
  const finished = (reason: RunEnd): NewEvent => ({
    type: "RunFinished",
    data: { run_id: "run-1", reason, ...counts },
  });

  test.each([
    ["the network was down", finished("network_unavailable")],
    ["the sending window was closed", finished("window_closed")],
    ["the service was stopped", finished("stopped")],
    ["of an internal fault", finished("fault")],
    ["its process died", { type: "RunAbandoned", data: { run_id: "run-1", ...counts } } satisfies NewEvent],
  ])("is not repeated if the run ended because %s", async (_why, end) => {
    for (const prefer of [{}, { prefer: "wait=10" }]) {
      // The first repeat starts another run, because the first run came to nothing. The second repeat then gets that
      // run's answer.
      expect(await repeatAfter(end, prefer)).toEqual({ triggers: 2, answered: ["run-2", "run-2"] });
    }
  });

  test.each([
    ["is in progress", undefined],
    ["is complete", finished("completed")],
    ["used up the day", finished("daily_limit_reached")],
    ["reached its limit of messages", finished("limit_reached")],
    ["reached its time limit", finished("time_limit")],
    ["found the account restricted", finished("sender_restricted")],
  ])("is repeated if the run %s", async (_why, end) => {
    expect(await repeatAfter(end)).toEqual({ triggers: 1, answered: ["run-1", "run-1"] });
  });
});

test("a run is triggered with a key that is the same for each repeat", async () => {
  await using world = await openApp();
  await world.authorize();
  world.triggered = { kind: "not_authorized" };
  for (const key of ["k-1", "k-1", "k-2"]) await post(world.app, "/social/run", {}, keyed(key));
  const [first, again, other] = world.triggers.map(({ key }) => key);
  expect(first).toEqual({ key: expect.any(String), digest: expect.any(String) });
  expect([again, other?.key === first?.key]).toEqual([first, false]);
});

test("400 keys share at most 256 leases", async () => {
  const names = new Set<string>();
  await using world = await openApp({
    store: (store) => ({
      ...store,
      leases: {
        ...store.leases,
        acquire(name, options) {
          names.add(name);
          return store.leases.acquire(name, options);
        },
      },
    }),
  });
  await world.authorize();
  world.triggered = { kind: "not_authorized" };
  for (let key = 1; key <= 400; key++) await post(world.app, "/social/run", {}, keyed(`k-${key}`));
  expect(world.triggers).toHaveLength(400);
  expect(names.size).toBeGreaterThan(100);
  expect(names.size).toBeLessThanOrEqual(256);
});
