import { expect, test } from "bun:test";
import { startPostgres, startProxy, type Proxy } from "eventstore-lite/testing";
import { BEARER, exported, until, type Running } from "../harness/process.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { rowOf } from "./delivery-network-table.ts";
import { openInstances, secondsSince, untilReady } from "./instances.ts";
import { lossesAmong, shownLosses, startNamedClicks, UNHARMED } from "./instances-load.ts";
import { click } from "./click-load.ts";
import { isWhole } from "../harness/case-count.ts";
import { expectWhole } from "./expect-whole-log.ts";

const CUTS = isWhole ? 500 : 60;
const CLICKS = { callers: 6, pauseMs: 5 };
const ROWS = [rowOf("meta")];

/**
 * Maximum number of PostgreSQL messages until a connection is cut. They are counted over all connections and both
 * directions, so the cut may hit any of them.
 */
const MESSAGES = 60;
const VERDICTS = ["cut", "cut-behind"] as const;

/**
 * Index of the instance whose connections to the database server pass through a proxy that cuts them; the other
 * instance connects directly.
 */
const CUT_OFF = 0;

/** Seed of the random choices. The same seed repeats the choices, but not the moments at which the processes act. */
const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

async function openWorld() {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres({ durable: true }));
  const url = await server.newDatabase();
  const proxy = stack.use(await startProxy(url));
  const own = (place: number) => (place === CUT_OFF ? { DATABASE_URL: proxy.url } : {});
  const settings = { DATABASE_URL: url };
  const instances = stack.use(await openInstances({ count: 2, rows: ROWS, settings, own }));
  const opened = stack.move();
  return { proxy, instances, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test(`an instance loses and duplicates nothing when connections to PostgreSQL are cut ${CUTS} times`, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same cuts)`);
  const pick = createPick(SEED);
  await using world = await openWorld();
  const { proxy, instances } = world;
  using load = startNamedClicks(instances, { ...CLICKS, places: [CUT_OFF] });
  const cut = { client: 0, server: 0 };
  for (let round = 0; round < CUTS; round++) {
    cut[await cutOnce(proxy, pick(MESSAGES), VERDICTS[pick(VERDICTS.length)]!)]++;
    await load.more(1);
  }
  await load.stop();
  await untilReady(instances);
  expect(await Promise.all(instances.places.map((place) => instances.end(place, "SIGTERM")))).toEqual([0, 0]);
  const losses = lossesAmong(await exported(instances.world), load);
  console.log(
    `connections of an instance cut ${CUTS} times ${JSON.stringify(cut)}: acknowledged ${load.acknowledged.size}, ` +
      `answers ${JSON.stringify(Object.fromEntries(load.answers))}; ${shownLosses(losses)}`,
  );
  expect(losses).toEqual(UNHARMED);
  expect([...load.answers.keys()].filter((status) => status !== 202 && status !== 503)).toEqual([]);
  await expectWhole(instances.world);
});

/** Cuts a connection after `after` more messages. Resolves with the sender of the cut message, once it has happened. */
async function cutOnce(proxy: Proxy, after: number, verdict: (typeof VERDICTS)[number]): Promise<"client" | "server"> {
  const { promise, resolve } = Promise.withResolvers<"client" | "server">();
  let left = after;
  proxy.decide(({ from }) => {
    if (left-- > 0) return "pass";
    proxy.decide(() => "pass");
    resolve(from);
    return verdict;
  });
  return promise;
}

test("an instance cut off from PostgreSQL refuses clicks, serves stale reads, and recovers", async () => {
  await using world = await openWorld();
  const { proxy, instances } = world;
  const { service } = await instances.at(CUT_OFF);
  using load = startNamedClicks(instances, CLICKS);
  await load.more(100);
  proxy.decide(() => "lose");
  const lostAt = performance.now();
  const [refusals, stats] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => refusedAfter(service))),
    until(
      async () => statsOf(service),
      ({ as_of }) => as_of.stale === true,
    ).then(({ as_of }) => ({ ...as_of, knownAfter: secondsSince(lostAt) })),
  ]);
  expect((await service.get("/livez")).status).toBe(200);
  expect((await service.get("/readyz")).status).toBe(503);
  // The instance whose connection to the database was not cut keeps working.
  const { service: other } = await instances.at(1);
  expect((await statsOf(other)).as_of.stale).toBeUndefined();

  proxy.decide(() => "pass");
  const backAt = performance.now();
  await untilReady(instances);
  const backAfter = secondsSince(backAt);
  await load.more(100);
  await load.stop();
  expect(await statsOf(service)).not.toHaveProperty("as_of.stale");
  expect(await Promise.all(instances.places.map((place) => instances.end(place, "SIGTERM")))).toEqual([0, 0]);
  const losses = lossesAmong(await exported(instances.world), load);
  console.log(
    `a network that swallows everything: refused after ${refusals.join(" ")} s, known to be old at ${stats.position} after ` +
      `${stats.knownAfter} s, ready ${backAfter} s after its end; acknowledged ${load.acknowledged.size}, ${shownLosses(losses)}`,
  );
  expect(losses).toEqual(UNHARMED);
  await expectWhole(instances.world);
});

/**
 * Posts a click that no instance can record, and returns the seconds until the refusal. If the click was already on its
 * way to the log, it may be recorded, so the answer asks for no repeat (`log-in-doubt`).
 */
async function refusedAfter({ post }: Running): Promise<number> {
  const startedAt = performance.now();
  const answer = await post("/api/tracking/event", click(0), BEARER);
  const { type } = (await answer.json()) as { readonly type: string };
  const retryAfter = type.endsWith("log-in-doubt") ? null : expect.stringMatching(/^\d+$/);
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, retryAfter]);
  return secondsSince(startedAt);
}

async function statsOf({ get }: Running) {
  return (await (await get("/social/stats")).json()) as {
    readonly as_of: { readonly position: number; readonly stale?: true };
  };
}
