import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProxy, type Proxy, type Verdict, startPostgres, type PostgresServer } from "eventstore-lite/testing";
import { authorize, BEARER, exported, until, type Running } from "../harness/process.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { expectDaysKept } from "./expect-daily-limit-kept.ts";
import { countArrivals, rowOf } from "./delivery-network-table.ts";
import { recordsOf } from "./delivery-records.ts";
import { faultsOfDispatch } from "./delivery-rules.ts";
import { count } from "./delivery-verdict.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import { follow } from "./follower.ts";
import { healthOf, openInstances, secondsSince, untilHandedOver, untilReady, type Instances } from "./instances.ts";
import { lossesAmong, shownLosses, startNamedClicks, UNHARMED, type NamedClicks } from "./instances-load.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { startTriggers, type Triggers } from "./trigger-runs-in-turn.ts";
import { isWhole } from "../harness/case-count.ts";
import { libfaketime } from "./required-tools.ts";
import { expectWhole } from "./expect-whole-log.ts";

/**
 * Number of minutes for which there are faults of instances, clocks, network and server. Each kind occurs at least
 * once.
 */
const MINUTES = Number(process.env["FAULT_MINUTES"] ?? (isWhole ? 12 : 0.5));

const INSTANCES = 3;
/** About thirty clicks a second, because the test is about what happens to each click and not about their number. */
const CLICKS = { callers: 4, pauseMs: 100 };

/**
 * Daily limit of messages, and the seconds between two of them. They are so small that the limit is reached before the
 * test ends, although no run is made while clocks are wrong.
 */
const LIMIT = 30;
const SPACING_S = Math.ceil((0.25 * MINUTES * 60) / LIMIT);
const PEOPLE = 100;

/**
 * Maximum time in ms between two faults. The next constant is the maximum time for which a server is unreachable; both
 * times are random.
 */
const WELL_MS_MAX = 2_000;
const AWAY_MS_MAX = 3_000;

/** Kinds of fault, in turn; `BRINGING` implements each. */
const FAULTS = [
  "takeover",
  "clock",
  "server",
  "cut",
  "sigterm",
  "swallow",
  "crowded",
  "day",
  "delay",
  "kill",
  "clock",
  "server",
  "kill",
] as const;
type FaultKind = (typeof FAULTS)[number];

const HOUR_MS = 3_600_000;
/** Possible offsets of an instance's clock from the real time, in ms. */
const CLOCKS_MS = [-HOUR_MS, 0, HOUR_MS];
const DAY_AHEAD_MS = 26 * HOUR_MS;
const DAY_AHEAD = INSTANCES - 1;

/**
 * Number of connections that the server accepts when it is crowded: fewer than the three instances want (about thirty).
 */
const CONNECTIONS_MAX = "12";

/** A fault cuts or delays one of this many messages between the instances and the server. */
const MESSAGES = 40;

/** Maximum time in seconds until an instance works again after a fault has ended. */
const RECOVERY_S_MAX = 5;

/** Networks that receive clicks. Meta and LINE de-duplicate; at Slack each repeat is another message. */
const ROWS = [rowOf("meta"), rowOf("slack"), rowOf("line")];
const CHANNEL_ROLES = ["dispatcher-ads", "dispatcher-chat", "dispatcher-messaging"];

/** Seed of the random choices. The same seed makes the same choices; the processes still behave differently. */
const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

/** Durations in seconds. */
interface Figures {
  /** Seconds until all instances were ready, for each kind of fault that had ended. */
  readonly recovery: Map<FaultKind, number[]>;
  readonly dispatchersAfterKill: number[];
  readonly dispatchersAfterSigterm: number[];
  readonly runsAfterKill: number[];
}

const TITLE = `${INSTANCES} instances lose and duplicate nothing in ${MINUTES} minutes of kills, cuts and moved clocks`;

test.skipIf(libfaketime === undefined)(TITLE, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same faults)`);
  await using server = await startPostgres({ durable: true });
  const settings = {
    DATABASE_URL: await server.newDatabase(),
    DAILY_LIMIT: String(LIMIT),
    SEND_SPACING_SECONDS: String(SPACING_S),
    // A digest is sent only if clicks have waited for an hour, so in this test each click is sent by itself and can be
    // found at the network.
    CHAT_DIGEST_AFTER_SECONDS: "3600",
  };
  await using proxies = await startProxies(settings.DATABASE_URL);
  using clocks = createClocks();
  const own = (place: number) => ({ DATABASE_URL: proxies.all[place]!.url, ...clocks.all[place]!.env });
  await using instances = await openInstances({ count: INSTANCES, settings, rows: ROWS, own });
  const { world, places } = instances;
  const arrived = ROWS.map((row) => countArrivals(row, world.sandbox));
  await addPeople(world, PEOPLE);
  await authorize((await instances.at(0)).service, world.sandbox);
  const followers = places.map((place) => follow(() => instances.at(place)));
  using load = startNamedClicks(instances, CLICKS);
  using triggers = startTriggers(instances);

  const figures: Figures = {
    recovery: new Map(),
    dispatchersAfterKill: [],
    dispatchersAfterSigterm: [],
    runsAfterKill: [],
  };
  const stage = { instances, server, proxies: proxies.all, clocks: clocks.all, load, triggers, figures };
  const faults = await inject(stage);

  await load.stop();
  await triggers.stop();
  const ending = await settled(instances);
  expect(ending.stats).toEqual(places.map(() => ending.stats[0]!));
  expect(ending.quota).toEqual(places.map(() => ending.quota[0]));
  await until(
    async () => followers.map(({ position }) => position),
    (positions) => positions.every((position) => position >= ending.position),
  );
  expect(await Promise.all(places.map((place) => instances.end(place, "SIGTERM")))).toEqual(places.map(() => 0));
  for (const follower of followers) follower[Symbol.dispose]();

  const log = await exported(world);
  const losses = lossesAmong(log, load);
  const gaps = log.filter(({ position }, index) => position !== index + 1).length;
  const ids = log.map(({ id }) => id);
  const skipped = followers.filter(({ seen, position }) => !Bun.deepEquals(seen, ids.slice(0, position)));
  const deliveries = ROWS.map((row, index) => {
    // Only clicks are counted, because each has a name. The chat also gets messages without a name: announcements of
    // runs that ended because of a wrong clock.
    const all = recordsOf(log, row, { arrived: arrived[index]!, kills: [] }).filter(({ isClick }) => isClick);
    return { network: row.network, ...count(all), broken: all.flatMap((record) => faultsOfDispatch(record, row)) };
  });
  const attempts = await attemptsOf(world);
  const { people, mostToOne } = arrivals(world);
  console.log(
    `${MINUTES} minutes of ${INSTANCES} instances ${JSON.stringify(faults)}: acknowledged ${load.acknowledged.size}, ` +
      `${shownLosses(losses)}, unanswered ${load.unanswered}, answers ${JSON.stringify(Object.fromEntries(load.answers))}, ` +
      `positions ${log.length}, gaps ${gaps}, subscribers that missed some ${skipped.length}; ` +
      `runs ${triggers.started}, messages ${people}, at most ${mostToOne} to one, counted ${ending.stats[0]?.sent}; ` +
      `${deliveries.map(({ network, delivered, inDoubt, doubled }) => `${network} ${delivered}, in doubt ${inDoubt}, doubled ${doubled}`).join("; ")}; ` +
      `seconds until others had the dispatchers after kill -9 ${figures.dispatchersAfterKill.join(" ")}, after SIGTERM ` +
      `${figures.dispatchersAfterSigterm.join(" ")}, until a run after kill -9 ${figures.runsAfterKill.join(" ")}; ` +
      `seconds until all were ready ${[...figures.recovery].map(([kind, all]) => `${kind} ${all.join(" ")}`).join(", ")}`,
  );
  const slow = [...figures.recovery].filter(([, all]) => Math.max(...all) > RECOVERY_S_MAX);
  expect(slow).toEqual([]);
  expect({ ...losses, gaps, skipped: skipped.length }).toEqual({ ...UNHARMED, gaps: 0, skipped: 0 });
  expect(deliveries.flatMap(({ broken }) => broken)).toEqual([]);
  // A click may be recorded although its request got no answer, so the log may contain more clicks than were
  // acknowledged.
  const recorded = log.filter(({ type }) => type === "LinkClicked").length;
  expect(deliveries.map(({ requested }) => requested)).toEqual(ROWS.map(() => recorded));
  expect(recorded - load.acknowledged.size).toBeLessThanOrEqual(load.unanswered);
  expect([...load.answers.keys()].filter((status) => status !== 202 && status !== 503)).toEqual([]);
  expect({ mostToOne, open: attempts.open, sent: ending.stats[0]?.sent }).toEqual({
    mostToOne: 1,
    open: 0,
    sent: people,
  });
  const perDay = await expectDaysKept(world, LIMIT);
  // Checks that one day's quota was used up. Otherwise the test would not notice a second quota on the same day.
  if (MINUTES >= 5) expect(Math.max(...Object.values(perDay))).toBe(LIMIT);
  await expectWhole(world);
});

async function startProxies(url: string) {
  await using stack = new AsyncDisposableStack();
  const all: Proxy[] = [];
  for (let place = 0; place < INSTANCES; place++) all.push(stack.use(await startProxy(url)));
  const started = stack.move();
  return { all, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

function createClocks() {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-clocks-"));
  const all = Array.from({ length: INSTANCES }, (_, place) => createFakeClock(join(directory, String(place))));
  return { all, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}

interface Stage {
  readonly instances: Instances;
  readonly server: PostgresServer;
  /** Proxies between the database server and the instances. The index is the number of the instance in this trial. */
  readonly proxies: readonly Proxy[];
  /** Fake clocks of the instances, by the place of the instance. */
  readonly clocks: readonly FakeClock[];
  readonly load: NamedClicks;
  readonly triggers: Triggers;
  readonly figures: Figures;
}

/** Injects faults, one after another. Returns how often each kind was injected. */
async function inject(stage: Stage): Promise<Record<FaultKind, number>> {
  const { instances, load, figures } = stage;
  const pick = createPick(SEED);
  const counts: Record<FaultKind, number> = {
    takeover: 0,
    clock: 0,
    server: 0,
    cut: 0,
    sigterm: 0,
    swallow: 0,
    crowded: 0,
    day: 0,
    delay: 0,
    kill: 0,
  };
  const endAt = performance.now() + MINUTES * 60_000;
  for (let round = 0; round < FAULTS.length || performance.now() < endAt; round++) {
    await untilReady(instances);
    // Waits until 20 more clicks are acknowledged, which shows that the instances work again after the previous fault.
    await load.more(20);
    await Bun.sleep(pick(WELL_MS_MAX));
    const kind = FAULTS[round % FAULTS.length]!;
    await BRINGING[kind](stage, pick);
    counts[kind]++;
    const endedAt = performance.now();
    await untilReady(instances);
    figures.recovery.set(kind, [...(figures.recovery.get(kind) ?? []), secondsSince(endedAt)]);
  }
  await untilReady(instances);
  await load.more(20);
  return counts;
}

type Bring = (stage: Stage, pick: (choices: number) => number) => Promise<void>;

const BRINGING: Readonly<Record<FaultKind, Bring>> = {
  async server({ server }, pick) {
    await server.stop("immediate");
    await Bun.sleep(pick(AWAY_MS_MAX));
    await server.start();
  },
  /** Restarts the database server with too few connections for the instances, for a while. */
  async crowded({ server }, pick) {
    await server.stop("immediate");
    await server.start({ max_connections: CONNECTIONS_MAX });
    await Bun.sleep(1_000 + pick(AWAY_MS_MAX));
    await server.stop("fast");
    await server.start();
  },
  async cut({ proxies }, pick) {
    await disturb(proxies, pick, () => (pick(MESSAGES) > 0 ? "pass" : pick(2) > 0 ? "cut" : "cut-behind"));
  },
  async swallow({ proxies }, pick) {
    await disturb(proxies, pick, () => "swallow");
  },
  async delay({ proxies }, pick) {
    await disturb(proxies, pick, () => (pick(MESSAGES) > 0 ? "pass" : "delay"));
  },
  /** Moves the clock of one instance by an hour, or sets it right. */
  async clock({ clocks }, pick) {
    const clock = clocks[pick(INSTANCES)]!;
    clock.set(Date.now() + CLOCKS_MS[pick(CLOCKS_MS.length)]!);
  },
  /** Sets the last instance's clock 26 hours ahead. It stays so until the fault `clock` moves it. */
  async day({ clocks }) {
    clocks[DAY_AHEAD]!.set(Date.now() + DAY_AHEAD_MS);
  },
  async kill({ instances }, pick) {
    const place = pick(INSTANCES);
    await instances.end(place, "SIGKILL");
    await instances.start(place);
  },
  /**
   * Kills the instances that make the run and that send to the chat. They start again once others hold their roles, and
   * a new run has begun or the quota is used up.
   */
  async takeover({ instances, clocks, triggers, figures }) {
    // All clocks are set right, so that the instance that remains after the kills can make runs.
    for (const clock of clocks) clock.set(Date.now());
    const { people } = arrivals(instances.world);
    // Waits for a new message at X, which is perhaps not yet in the log, unless the day's quota is used up.
    await until(
      () => Promise.resolve(arrivals(instances.world)),
      (now) => now.people > people || now.people >= LIMIT,
    );
    const { roles: holders } = await healthOf((await instances.at(0)).service);
    const before = triggers.started;
    const killed = instances.living().filter(({ id }) => [holders["run"], holders["dispatcher-chat"]].includes(id));
    await Promise.all(killed.map(({ place }) => instances.end(place, "SIGKILL")));
    const killedAt = performance.now();
    const [took] = await Promise.all([
      Promise.all(killed.map(({ id }) => handedOver(instances, id, holders))),
      until(
        () => Promise.resolve(triggers.started),
        (started) => started > before || arrivals(instances.world).people >= LIMIT,
      ).then(() => figures.runsAfterKill.push(secondsSince(killedAt))),
    ]);
    figures.dispatchersAfterKill.push(...took.flat());
    await Promise.all(killed.map(({ place }) => instances.start(place)));
  },
  async sigterm({ instances, figures }) {
    const { roles: holders } = await healthOf((await instances.at(0)).service);
    const { place, id } = instances.living().find((one) => one.id === holders["dispatcher-chat"])!;
    expect(await instances.end(place, "SIGTERM")).toBe(0);
    figures.dispatchersAfterSigterm.push(...(await handedOver(instances, id, holders)));
    await instances.start(place);
  },
};

/** Disturbs the network of some instances for a while. */
async function disturb(
  proxies: readonly Proxy[],
  pick: (choices: number) => number,
  verdict: () => Verdict,
): Promise<void> {
  const [first, ...others] = proxies.toSorted(() => pick(2) - 0.5);
  const disturbed = [first!, ...others.filter(() => pick(2) > 0)];
  for (const proxy of disturbed) proxy.decide(verdict);
  await Bun.sleep(1_000 + pick(AWAY_MS_MAX));
  for (const proxy of disturbed) proxy.decide(() => "pass");
}

/**
 * Waits until a living instance has the dispatchers of an instance that has ended. Returns the seconds that each
 * dispatcher took.
 */
async function handedOver(instances: Instances, former: string, holders: Readonly<Record<string, string>>) {
  const roles = CHANNEL_ROLES.filter((role) => holders[role] === former);
  const [witness] = instances.living();
  return Object.values(await untilHandedOver(witness!.service, former, roles));
}

/**
 * Ends the run in progress and waits until nothing is pending or in doubt and all instances agree. Returns the health
 * of each.
 */
async function settled({ world, places, at }: Instances) {
  const services = await Promise.all(places.map(async (place) => (await at(place)).service));
  expect((await services[0]!.post("/social/run/stop", undefined, BEARER)).status).toBeOneOf([202, 409]);
  await until(
    () => world.execute("outreach", "reconcile"),
    ({ code }) => code === 0,
  );
  const healths = await until(
    () => Promise.all(services.map(healthOf)),
    (all) =>
      all.every(
        ({ log, channels }) =>
          log.position === all[0]?.log.position && Object.values(channels).every(({ pending }) => pending === 0),
      ),
  );
  const ask = (path: string) => Promise.all(services.map((service) => bodyOf(service, path)));
  const [stats, social] = [await ask("/social/stats"), await ask("/social/health")];
  return {
    position: healths[0]!.log.position,
    stats: stats as { readonly sent?: number }[],
    quota: social.map(({ quota }) => quota),
  };
}

async function bodyOf({ get }: Running, path: string): Promise<Readonly<Record<string, unknown>>> {
  return (await (await get(path)).json()) as Record<string, unknown>;
}
