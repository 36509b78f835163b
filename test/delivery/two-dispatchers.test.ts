// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { findChannel, pendingOf } from "../../projections/deliveries.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import type { Channel } from "../../src/networks/network.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { openDelivery, passUntil, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { createReach, type Reach } from "../harness/in-process/interrupt-log-access.ts";
import { auditLog, auditOrder, auditRequests, auditTruth } from "./model/check-log-after-history.ts";
import { createRandom } from "../harness/random.ts";
import { isWhole } from "../harness/case-count.ts";
import type { Kind } from "./model/network-answers.ts";
import { clickOf, logOf, resumeAll, subscribed, textOf } from "./model/play-history.ts";
import { createNetwork, type Life, type Network } from "./model/network.ts";
import { HOUR_MS, MINUTE_MS, SUBSCRIPTIONS } from "./model/generate-delivery-histories.ts";
import { createOrderWatch, isFinal, outcomesOf } from "./model/check-requests.ts";

/**
 * Number of random histories in a round. The test repeats rounds until each rare situation in {@link LEAST} occurred
 * often enough. The rarest is a dispatch in doubt because the lease of its dispatcher ended.
 */
const HISTORIES = isWhole ? 25 : 6;
const ROUNDS_MAX = 30;

/** Factor by which leases last longer: 25 minutes, so a history of hours needs few renewals. */
const LEASE_SCALE = 100;

/** Time until another instance has taken over: longer than a lease plus the time until that instance asks for it. */
const TAKEN_OVER_MS = 30 * MINUTE_MS;

/**
 * Minimum number of times that each rare situation must occur in the histories; otherwise a passing test means little.
 */
const MANY = isWhole ? 20 : 3;
const LEAST = {
  chat: { claimed: MANY, doubted: 0, takenOver: MANY / 4 },
  webhook: { waited: MANY, takenOver: MANY / 4 },
} satisfies Readonly<Record<string, Partial<Lived>>>;

type Step =
  | { readonly do: "click"; readonly count: number; readonly stream: number }
  | { readonly do: "notify"; readonly count: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "stand" | "go on" | "kill" | "stop"; readonly which: number };

/** Number of links; the clicks of each link are a separate stream for the webhook. */
const STREAM_COUNT = 4;

const which = fc.nat(1);
const stream = fc.nat(STREAM_COUNT - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("click" as const), count: fc.integer({ min: 1, max: 20 }), stream }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("notify" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(0, 100, 3_000, MINUTE_MS) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constant(TAKEN_OVER_MS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("stand" as const, "kill" as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("go on" as const, "stop" as const), which }) },
);

/** Simulated networks. Those that recognise repeats do so for longer than a takeover takes. */
const KINDS: Readonly<Record<string, Kind>> = {
  doubling: { recognisesMs: undefined, batch: undefined },
  knowing: { recognisesMs: 100 * HOUR_MS, batch: undefined },
  batching: { recognisesMs: 100 * HOUR_MS, batch: 8 },
  inOrder: { recognisesMs: Infinity, batch: undefined, isInOrder: true },
};

const historiesOf = (...kinds: readonly string[]) =>
  fc.record({
    seed: fc.integer(),
    kind: fc.constantFrom(...kinds),
    digestAfterMs: fc.constantFrom(undefined, 30_000),
    steps: fc.array(step, { minLength: 6, maxLength: 14 }),
  });

type History = ReturnType<typeof historiesOf> extends fc.Arbitrary<infer T> ? T : never;

interface Lived {
  readonly claimed: number;
  readonly doubted: number;
  /**
   * Number of failed attempts behind which later events of the same stream had to wait. Without any, the test would not
   * show that a stream stays in order.
   */
  readonly waited: number;
  readonly takenOver: number;
}

const MET = ["claimed", "doubted", "waited", "takenOver"] as const;

interface Instance {
  readonly house: DeliveryHarness;
  readonly life: Life;
  readonly reach: Reach;
}

test("two dispatchers that freeze or die at any time lose and duplicate no dispatch", () =>
  liveUntilMet("chat", historiesOf("doubling", "doubling", "knowing", "batching")));

test("two dispatchers of a webhook in order keep each stream's order and block no other stream", () =>
  liveUntilMet("webhook", historiesOf("inOrder")));

async function liveUntilMet(channel: keyof typeof LEAST, histories: fc.Arbitrary<History>): Promise<void> {
  const met = { claimed: 0, doubted: 0, waited: 0, takenOver: 0 };
  const least: Readonly<Partial<Lived>> = LEAST[channel];
  const lacking = () => MET.filter((what) => met[what] <= (least[what] ?? -1));
  for (let round = 0; round < ROUNDS_MAX && lacking().length > 0; round++) {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        const lived = await live(channel, history);
        for (const what of MET) met[what] += lived[what];
      }),
      { numRuns: HISTORIES },
    );
  }
  expect(lacking()).toEqual([]);
}

async function live(channel: ChannelName, { seed, kind, digestAfterMs, steps }: History): Promise<Lived> {
  const file = newLogFile();
  const time = fakeTime();
  const random = createRandom(seed);
  const known = KINDS[kind] ?? { recognisesMs: undefined, batch: undefined };
  const network = createNetwork(channel, known, time, random, () => {});
  const order = createOrderWatch();
  let stuck: string | undefined;
  let named = 0;

  /** Returns the channel of a simulated instance. It answers each dispatch of the stream `stuck` with a 503. */
  const channelOf = (life: Life): Channel => {
    const inner = network.channel(life, "credential");
    return {
      ...inner,
      send(dispatch, options) {
        if (!life.killed) order.request(dispatch);
        if (dispatch.kind !== "event" || dispatch.event.stream !== stuck) return inner.send(dispatch, options);
        return Promise.resolve({ outcome: "retryable", detail: "not now", status: 503 });
      },
    };
  };

  const start = async (): Promise<Instance> => {
    const life: Life = { killed: false, refused: new Set(), ending: false, beginning: undefined };
    const reach = createReach();
    const house = await openDelivery({
      file,
      time,
      random,
      instance: `instance ${named++}`,
      leaseScale: LEASE_SCALE,
      wrap: (eventLog) => reach.wrap(order.wrap(eventLog)),
      channels: [channelOf(life)],
      ...(digestAfterMs === undefined ? {} : { digestAfterMs }),
    });
    return { house, life, reach };
  };
  const instances: [Instance, Instance] = [await start(), await start()];
  const houses = (): DeliveryHarness[] => instances.map(({ house }) => house);

  const click = async (at: number, count: number): Promise<void> => {
    const [{ house }] = instances;
    const newEvents = Array.from({ length: count }, () => clickOf(`c${named++}`, [channel]));
    const { last } = await house.eventLog.append(STREAMS.link("go.example", `${at}`), newEvents, { caller: "test" });
    await house.projector.until(last);
  };

  const take = async (one: Step): Promise<void> => {
    const [{ house }] = instances;
    switch (one.do) {
      case "click":
        return click(one.stream, one.count);
      case "notify":
        await house.append(...Array.from({ length: one.count }, () => textOf(`n${named++}`, [channel])));
        return;
      case "pass":
        return passUntil(time.clock() + one.ms, time, houses());
      default: {
        const at = one.which === 0 ? 0 : 1;
        if (one.do === "stand") return instances[at].reach.standStill();
        if (one.do === "go on") return instances[at].reach.goOn();
        await end(instances[at], network, one.do === "kill");
        instances[at] = await start();
      }
    }
  };

  if (channel === "webhook") await instances[0].house.append(subscribed(SUBSCRIPTIONS[0]));
  try {
    for (const one of steps) await take(one);
    network.heal();
    for (const { reach } of instances) reach.goOn();
    const settled = () => settle(channel, instances, () => passUntil(time.clock() + HOUR_MS, time, houses()));
    await settled();
    const [{ house }] = instances;
    if (known.isInOrder === true) {
      const since = house.projector.position;
      stuck = STREAMS.link("go.example", `${seed & (STREAM_COUNT - 1)}`);
      for (let at = 0; at < STREAM_COUNT; at++) await click((seed + at) & (STREAM_COUNT - 1), 2);
      await settled();
      auditStuck((await logOf(house)).slice(since), stuck, channel);
    }
    const log = await logOf(house);
    auditLog(log, channel, { state: findChannel(house.projector.state("deliveries"), channel), ghosts: 0 });
    if (known.isInOrder === true) {
      auditOrder(log, channel);
      auditRequests(log, order);
    }
    auditTruth(log, channel, network.taken, { exposed: new Map(), recognises: known.recognisesMs !== undefined });
    const claims = log.filter(({ type }) => type === "DispatchClaimed");
    const doubted = (await house.outcomes("DispatchInDoubt")).filter(
      ({ data }) => data.detail?.includes("lease ended") === true,
    );
    const tokens = (await house.store.leases.list([`dispatcher-${channel}`])).map(({ token }) => token);
    const waited = (await house.outcomes("DispatchFailed")).filter(({ data, position }) => {
      const { stream } = log[data.source - 1] ?? {};
      return log.slice(data.source, position).some((event) => event.stream === stream);
    });
    return {
      claimed: claims.length,
      doubted: doubted.length,
      waited: waited.length,
      takenOver: Math.max(0, ...tokens) - 1,
    };
  } finally {
    for (const instance of instances) await end(instance, network, false);
  }
}

/** Checks that the events of all other streams ended before any event of the stuck stream did. */
function auditStuck(log: readonly Recorded[], stuck: string, channel: ChannelName): void {
  const streams = new Map(log.map(({ position, stream }) => [position, stream]));
  const ends = outcomesOf(log, channel).filter(isFinal);
  const ended = ends.map(({ data }) => streams.get(data.source) ?? "");
  const others = ended.filter((stream) => stream !== stuck);
  expect(others).toHaveLength(2 * (STREAM_COUNT - 1));
  expect(ended.slice(0, others.length)).toEqual(others);
}

async function end({ house, life, reach }: Instance, network: Network, isKilled: boolean): Promise<void> {
  life.killed = isKilled;
  life.ending = true;
  if (isKilled) reach.die();
  else reach.goOn();
  network.release();
  await house[Symbol.asyncDispose]();
}

/** Hours within which everything settles: longer than any wait for a network that works again. */
const HOURS_MAX = 60;

async function settle(
  channel: ChannelName,
  instances: readonly Instance[],
  anHour: () => Promise<void>,
): Promise<void> {
  const [first] = instances;
  if (first === undefined) return;
  const pending = (): number => pendingOf(findChannel(first.house.projector.state("deliveries"), channel));
  for (let hour = 0; hour === 0 || pending() > 0; hour++) {
    if (hour > HOURS_MAX) throw new Error(`after ${hour} hours ${pending()} are pending`);
    await resumeAll(first.house, [channel]);
    await anHour();
  }
}
