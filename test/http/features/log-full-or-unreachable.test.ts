// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { StoreFull, StoreUnavailable } from "eventstore-lite/testing";
import type { Event } from "../../../events/event-types-and-codec.ts";
import type { EventLog } from "../../../src/log/event-log.ts";
import { createEventIntake } from "../../../src/http/server/event-intake.ts";
import { ServiceError } from "../../../src/platform/service-error.ts";
import { ask, GOOD, openApp, post, TOKEN } from "../../harness/in-process/app.ts";
import { METADATA, openMemoryLog, SILENT } from "../../harness/in-process/temporary-log.ts";
import { formTokenIn, oneOfEach } from "../request-each-endpoint.ts";

/** Makes a log refuse appends and snapshots with `StoreFull` while `disk.isFull`. */
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

test.each(POSTS)("a full disk refuses %s and degrades health until there is room", async (path) => {
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
  // The health check itself notices that the log is writable again. It needs no request that writes.
  disk.isFull = false;
  expect(await health()).toEqual([200, "ok"]);
  expect((await send()).ok).toBe(true);
});

test("an outage of the key store is logged once, although events without a key are accepted", async () => {
  await using log = await openMemoryLog();
  const lines: string[] = [];
  let isAway = true;
  const askKeys = async (): Promise<void> => {
    if (isAway) throw new ServiceError("full", "the key store does not answer");
  };
  const eventLog: EventLog = {
    ...log.eventLog,
    async append(stream, newEvents, ...others) {
      if (newEvents[0]?.type === MESSAGE.type) await askKeys();
      return log.eventLog.append(stream, newEvents, ...others);
    },
  };
  const say = (line: string): void => void lines.push(line);
  const eventIntake = createEventIntake(eventLog, askKeys, () => true, { ...SILENT, info: say, warn: say });
  const by = { metadata: METADATA, key: undefined };
  const refusal = () => eventIntake.append([MESSAGE], by).catch((fault: unknown) => fault);
  for (const _time of [1, 2]) {
    expect(await refusal()).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
    await eventIntake.append([{ type: "ChannelTestRequested", data: { channels: ["chat"] } }], by);
    expect(await eventIntake.isWritable()).toBe(false);
  }
  expect(lines).toEqual(["requests are refused: they cannot be recorded"]);
  isAway = false;
  expect(await eventIntake.isWritable()).toBe(true);
  expect(lines).toEqual(["requests are refused: they cannot be recorded", "requests are recorded again"]);
});

test("a full disk that still accepts small events is logged once, and its end once", async () => {
  await using log = await openMemoryLog();
  const lines: string[] = [];
  let isFull = true;
  const store = onDisk({
    get isFull() {
      return isFull;
    },
  })(log.eventLog.store);
  let isSmall = false;
  const eventLog: EventLog = {
    ...log.eventLog,
    store,
    append: (...args) => (isFull && !isSmall ? Promise.reject(new StoreFull()) : log.eventLog.append(...args)),
  };
  const say = (line: string): void => void lines.push(line);
  const eventIntake = createEventIntake(
    eventLog,
    async () => {},
    () => true,
    { ...SILENT, info: say, warn: say },
  );
  const by = { metadata: METADATA, key: undefined };
  for (isSmall of [false, true, false, true]) await eventIntake.append([MESSAGE], by).catch(() => undefined);
  await eventIntake.isWritable();
  expect(lines).toEqual(["requests are refused: they cannot be recorded"]);
  isFull = false;
  await eventIntake.append([MESSAGE], by);
  // The store writes in order. Once both of these snapshots are saved, the probe of the log that was queued between
  // them has been written too.
  for (const name of ["one", "two"]) await store.snapshots.save(name, { version: 1, position: 0, state: "" });
  expect(lines).toEqual(["requests are refused: they cannot be recorded", "requests are recorded again"]);
});

const MESSAGE = { type: "MessageRequested", data: { text: "hello" } } as const;

/**
 * Wraps a log, or a part of one such as its leases: while `isAway` returns true, its calls fail as for an unreachable
 * log.
 */
function gated<Part extends object>(part: Part, isAway: () => boolean): Part {
  const away = () => Promise.reject(new StoreUnavailable("the log does not answer"));
  async function* none(): AsyncGenerator {
    yield await away();
  }
  const gate = ([name, member]: [string, unknown]): [string, unknown] => {
    if (typeof member !== "function" || ["open", "cursor"].includes(name)) return [name, member];
    const refusing = /^(?:read|subscribe)/.test(name) ? none : away;
    return [name, (...args: unknown[]) => (isAway() ? refusing() : member(...args))];
  };
  return { ...part, ...Object.fromEntries(Object.entries(part).map(gate)) };
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/**
 * Endpoints that succeed without a log in this test. Runs and look-ups are simulated, no message is in doubt, no
 * account is linked, suspended channels are known in memory, and a preview records nothing.
 */
const WITHOUT_LOG = [
  "POST /social/lookup",
  "POST /social/run",
  "POST /social/settle",
  "POST /social/account/unlink",
  "POST /api/deliveries/resume",
  "POST /api/messaging/whatsapp",
  "POST /social/recipients/preview",
];

/**
 * Request bodies of decisions about dead letters. The examples in the OpenAPI document cannot be sent, because some of
 * their members exclude each other.
 */
const DECISIONS: Readonly<Record<string, object>> = {
  "/api/deliveries/retry": { all: true },
  "/api/deliveries/discard": { all: true, why: "over" },
  "/api/deliveries/settle": { all: true, why: "over", as: "left" },
};

/**
 * Endpoints that answer 503 even with a log in this test, because no X account and no address for links is configured.
 */
const UNCONFIGURED = ["/social/auth", "/social/callback", "/api/links/add"];

test("while the log is unreachable, each refusing endpoint answers 503 with Retry-After", async () => {
  let isAway = false;
  await using world = await openApp({
    store: (store) => ({
      ...gated(store, () => isAway),
      snapshots: gated(store.snapshots, () => isAway),
      leases: gated(store.leases, () => isAway),
    }),
  });
  const { app } = world;
  expect((await post(app, "/social/recipients", [{ username: "sara_sells" }], { token: TOKEN })).status).toBe(200);
  expect((await post(app, "/api/tracking/event", GOOD["/api/tracking/event"], { token: TOKEN })).status).toBe(202);
  const signedIn = await ask(app, "/session", { method: "POST", body: `token=${TOKEN}`, headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  const formToken = formTokenIn(await (await ask(app, "/setup", { headers: { cookie } })).text());
  const requests = oneOfEach(await (await ask(app, "/openapi.json")).text(), { token: TOKEN, cookie, formToken });
  isAway = true;
  const answers = new Map<string, readonly [status: number, retryAfter: string | null]>();
  for (const { path, init } of requests.filter((one) => !UNCONFIGURED.includes(one.path))) {
    const headers = { ...init.headers, host: "localhost" };
    const body = DECISIONS[path] === undefined ? {} : { body: JSON.stringify(DECISIONS[path]) };
    const answer = await app.handle(new Request(`http://localhost${path}`, { ...init, ...body, headers }));
    answers.set(`${init.method ?? "GET"} ${path}`, [answer.status, answer.headers.get("retry-after")]);
    await answer.body?.cancel();
  }
  const refused = [...answers].filter(([, [status]]) => status >= 500);
  expect(refused).toEqual(refused.map(([endpoint]) => [endpoint, [503, "5"]]));
  const actions = [...answers.keys()].filter((endpoint) => /^POST \/(?:api|social)\//.test(endpoint));
  const served = actions.filter((endpoint) => !refused.some(([name]) => name === endpoint));
  expect(served).toEqual(WITHOUT_LOG);
});
