// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { ChannelName } from "../../events/channel.ts";
import { pendingOf } from "../../projections/deliveries.ts";
import { fakeTime } from "../harness/memory/fake-time.ts";
import { newLogFile } from "../harness/memory/log.ts";
import { openDelivery, passUntil, type DeliveryHarness } from "../harness/memory/delivery.ts";
import { createReach, type Reach } from "../harness/memory/reach.ts";
import { auditLog, auditTruth } from "./model/audit.ts";
import { createRandom, type Kind } from "./model/fates.ts";
import { clickOf, logOf, resumeAll, textOf } from "./model/history.ts";
import { createNetwork, type Life, type Network } from "./model/network.ts";
import { HOUR_MS, MINUTE_MS } from "./model/steps.ts";

/** Of a round. A claim is seldom in doubt, so that a round seldom meets enough of them. */
const HISTORIES = 25;
const ROUNDS_MAX = 10;

/** Leases of 25 minutes: few renewals in the hours that a history lasts. */
const LEASE_SCALE = 100;

/** Longer than a lease, and than it takes for another to ask for it. */
const TAKEN_OVER_MS = 30 * MINUTE_MS;

/** So much must have been tried, or a passing test says little. */
const LEAST = { claimed: 20, doubted: 1, takenOver: 5 };
const MET = ["claimed", "doubted", "takenOver"] as const;

type Step =
  | { readonly do: "click" | "notify"; readonly count: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "stand" | "go on" | "kill" | "stop"; readonly which: number };

const which = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("click" as const), count: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("notify" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(0, 100, 3_000, MINUTE_MS) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constant(TAKEN_OVER_MS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("stand" as const, "kill" as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("go on" as const, "stop" as const), which }) },
);

/** Networks that recognise a repeat do so for longer than a takeover takes. */
const KINDS: Readonly<Record<string, Kind>> = {
  doubling: { recognisesMs: undefined, batch: undefined },
  knowing: { recognisesMs: 100 * HOUR_MS, batch: undefined },
  batching: { recognisesMs: 100 * HOUR_MS, batch: 8 },
};

const histories = fc.record({
  seed: fc.integer(),
  kind: fc.constantFrom("doubling", "doubling", "knowing", "batching"),
  digestAfterMs: fc.constantFrom(undefined, 30_000),
  steps: fc.array(step, { minLength: 6, maxLength: 14 }),
});

type History = typeof histories extends fc.Arbitrary<infer T> ? T : never;

interface Lived {
  readonly claimed: number;
  readonly doubted: number;
  readonly takenOver: number;
}

interface Instance {
  readonly house: DeliveryHarness;
  readonly life: Life;
  readonly reach: Reach;
}

const CHAT: ChannelName = "chat";

test("two dispatchers of a channel, of which any stands still or dies at any time: nothing is lost, and nothing arrives twice", async () => {
  const met = { claimed: 0, doubted: 0, takenOver: 0 };
  const lacking = () => MET.filter((what) => met[what] <= LEAST[what]);
  for (let round = 0; round < ROUNDS_MAX && lacking().length > 0; round++) {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        const lived = await live(history);
        for (const what of MET) met[what] += lived[what];
      }),
      { numRuns: HISTORIES },
    );
  }
  expect(lacking()).toEqual([]);
});

async function live({ seed, kind, digestAfterMs, steps }: History): Promise<Lived> {
  const file = newLogFile();
  const time = fakeTime();
  const random = createRandom(seed);
  const known = KINDS[kind] ?? { recognisesMs: undefined, batch: undefined };
  const network = createNetwork(CHAT, known, time, random, () => {});
  let named = 0;

  const start = async (): Promise<Instance> => {
    const life: Life = { killed: false, refused: new Set(), ending: false, beginning: undefined };
    const reach = createReach();
    const house = await openDelivery({
      file,
      time,
      random,
      instance: `instance ${named++}`,
      leaseScale: LEASE_SCALE,
      wrap: reach.wrap,
      channels: [network.channel(life, "credential")],
      ...(digestAfterMs === undefined ? {} : { digestAfterMs }),
    });
    return { house, life, reach };
  };
  const instances: [Instance, Instance] = [await start(), await start()];
  const houses = (): DeliveryHarness[] => instances.map(({ house }) => house);

  const take = async (one: Step): Promise<void> => {
    const [{ house }] = instances;
    switch (one.do) {
      case "click":
        await house.append(...Array.from({ length: one.count }, () => clickOf(`c${named++}`, [CHAT])));
        return;
      case "notify":
        await house.append(...Array.from({ length: one.count }, () => textOf(`n${named++}`, [CHAT])));
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

  try {
    for (const one of steps) await take(one);
    network.heal();
    for (const { reach } of instances) reach.goOn();
    await settle(instances, () => passUntil(time.clock() + HOUR_MS, time, houses()));
    const [{ house }] = instances;
    const log = await logOf(house);
    auditLog(log, CHAT, { state: house.projector.state("deliveries")[CHAT], ghosts: 0 });
    auditTruth(log, CHAT, network.taken, { exposed: new Map(), recognises: known.recognisesMs !== undefined });
    const claims = log.filter(({ type }) => type === "DispatchClaimed");
    const doubted = (await house.outcomes("DispatchInDoubt")).filter(
      ({ data }) => data.detail?.includes("lease ended") === true,
    );
    const tokens = (await house.store.leases.list(["dispatcher-chat"])).map(({ token }) => token);
    return { claimed: claims.length, doubted: doubted.length, takenOver: Math.max(0, ...tokens) - 1 };
  } finally {
    for (const instance of instances) await end(instance, network, false);
  }
}

async function end({ house, life, reach }: Instance, network: Network, isKilled: boolean): Promise<void> {
  life.killed = isKilled;
  life.ending = true;
  if (isKilled) reach.die();
  else reach.goOn();
  network.release();
  await house[Symbol.asyncDispose]();
}

/** Of a network that is well again: longer than any wait. */
const HOURS_MAX = 60;

async function settle(instances: readonly Instance[], anHour: () => Promise<void>): Promise<void> {
  const [first] = instances;
  if (first === undefined) return;
  const pending = (): number => pendingOf(first.house.projector.state("deliveries")[CHAT]);
  for (let hour = 0; hour === 0 || pending() > 0; hour++) {
    if (hour > HOURS_MAX) throw new Error(`after ${hour} hours ${pending()} are pending`);
    await resumeAll(first.house, [CHAT]);
    await anHour();
  }
}
