import { expect } from "bun:test";
import * as fc from "fast-check";
import { StoreFull } from "eventstore-lite";
import type { Recorded } from "../../../events/catalog.ts";
import { pendingOf } from "../../../projections/deliveries.ts";
import { findDeadLetters } from "../../../src/delivery/dead-letters.ts";
import { WINDOW_MAX } from "../../../src/delivery/pace.ts";
import type { Fact, Journal } from "../../../src/journal.ts";
import { newLogFile } from "../../events/temporary-log.ts";
import { fakeTime } from "../fake-time.ts";
import { openHouse, type House } from "../house.ts";
import { auditLog, auditTruth } from "./audit.ts";
import { createRandom, type Kind } from "./fates.ts";
import { createNetwork, type Life } from "./network.ts";
import { createWatch, isFinal, keysByPosition } from "./watch.ts";

type Step =
  | { readonly do: "click" | "notify"; readonly count: number }
  | { readonly do: "pass" | "leap"; readonly ms: number }
  | { readonly do: "kill" | "stop"; readonly otherCredential: boolean }
  | { readonly do: "resume" | "retry" };

interface History {
  readonly seed: number;
  readonly kind: Kind;
  /** Of a hundred appends of outcomes, how many the log refuses, or takes and says it did not. */
  readonly faults: number;
  readonly steps: readonly Step[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("click" as const), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("notify" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: MINUTE_MS }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: HOUR_MS }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("leap" as const),
      ms: fc.integer({ min: -10 * MINUTE_MS, max: 10 * MINUTE_MS }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("kill" as const, "stop" as const), otherCredential: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("resume" as const, "retry" as const) }) },
);

/** Slack and Telegram; LINE, whose digests it does not know; Meta. */
const kinds: fc.Arbitrary<Kind> = fc.constantFrom<Kind>(
  { recognisesMs: undefined, batch: undefined, digestAfterMs: undefined },
  { recognisesMs: undefined, batch: undefined, digestAfterMs: 30_000 },
  { recognisesMs: 30 * MINUTE_MS, batch: undefined, digestAfterMs: 30_000 },
  { recognisesMs: 30 * MINUTE_MS, batch: 8, digestAfterMs: undefined },
);

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.integer(),
  kind: kinds,
  faults: fc.constantFrom(0, 0, 5),
  steps: fc.array(step, { minLength: 3, maxLength: 14 }),
});

export interface Lived {
  readonly requests: number;
  readonly kills: number;
  readonly outcomes: ReadonlyMap<string, number>;
}

/** Lives through a history, lets everything come to its end, and holds the log against what the network knows. */
export async function live({ seed, kind, faults, steps }: History): Promise<Lived> {
  const file = newLogFile();
  const time = fakeTime();
  const random = createRandom(seed);
  const watch = createWatch();
  let [requests, kills, ghosts, named, credential] = [0, 0, 0, 0, 0];
  let house: House | undefined;
  let life: Life = { killed: false, refused: false, ending: false, beginning: undefined };

  const network = createNetwork(kind, time, random, (request) => {
    requests++;
    const position = house?.projector.position ?? 0;
    const isStopped = house?.projector.state("deliveries").chat.stopped !== null && house !== undefined;
    watch.request(request, time.clock(), { position, isStopped });
  });

  const wrapFor =
    (of: Life) =>
    (journal: Journal): Journal => ({
      ...journal,
      async append(...args) {
        const fault = random() * 100;
        of.refused ||= fault < faults;
        if (of.killed || fault < faults / 2) throw new StoreFull();
        const appended = await journal.append(...args);
        if (!of.killed && fault >= faults) return appended;
        ghosts++;
        throw new StoreFull();
      },
    });

  const begin = async (): Promise<House> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    life = { killed: false, refused: false, ending: false, beginning: promise };
    const opened = await openHouse({
      file,
      time,
      random,
      wrap: wrapFor(life),
      channels: [network.channel(life, `credential ${credential}`)],
      ...(kind.digestAfterMs === undefined ? {} : { digestAfterMs: kind.digestAfterMs }),
    });
    house = opened;
    watch.begin(await logOf(opened));
    life.beginning = undefined;
    resolve();
    return opened;
  };

  const end = async (current: House): Promise<void> => {
    life.ending = true;
    network.release();
    await current[Symbol.asyncDispose]();
    house = undefined;
  };

  const take = async (current: House, one: Step): Promise<House> => {
    switch (one.do) {
      case "click":
        await current.tell(...Array.from({ length: one.count }, () => clickOf(`c${named++}`)));
        return current;
      case "notify":
        await current.tell(...Array.from({ length: one.count }, () => notificationOf(`n${named++}`)));
        return current;
      case "pass":
        await current.until(time.clock() + one.ms);
        return current;
      case "leap":
        await current.until(time.clock());
        time.advance(one.ms);
        return current;
      case "kill":
      case "stop":
        life.killed = one.do === "kill";
        if (life.killed) kills++;
        if (one.otherCredential) credential++;
        await end(current);
        return begin();
      case "resume":
        if (current.projector.state("deliveries").chat.stopped !== null) await current.tell(RESUME);
        return current;
      case "retry":
        await retryOne(current, watch.reowed);
        return current;
    }
  };

  let current = await begin();
  try {
    for (const one of steps) current = await take(current, one);
    faults = 0;
    network.heal();
    await settle(current, time.clock);
    expect(network.inFlightMax).toBeLessThanOrEqual(WINDOW_MAX);
    const log = await logOf(current);
    watch.begin(log);
    auditLog(log, current.projector.state("deliveries").chat, ghosts);
    auditTruth(log, network.taken, { exposed: watch.exposed, recognises: kind.recognisesMs !== undefined });
    if (watch.broken.length > 0) throw new Error(watch.broken.join("\n"));
    return { requests, kills, outcomes: countsOf(log) };
  } finally {
    await end(current);
  }
}

const RESUME: Fact = { type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } };

function clickOf(short_code: string): Fact {
  const link = { event: "click", domain: "go.example", short_code, original_url: "https://example.com", bot: false };
  return { type: "LinkClicked", data: { ...link, channels: ["chat"] } };
}

function notificationOf(message: string): Fact {
  return { type: "NotificationRequested", data: { message, service: "model", level: "info" } };
}

async function logOf({ journal }: House): Promise<readonly Recorded[]> {
  return (await Array.fromAsync(journal.store.read())) as Recorded[];
}

/** An operator takes up the newest dead letter. */
async function retryOne(house: House, reowed: (key: string) => void): Promise<void> {
  const letter = (await findDeadLetters(house.journal.store)).at(-1);
  if (letter === undefined) return;
  const { event_id, source, channel } = letter;
  reowed(keysByPosition(await logOf(house)).get(source) ?? "");
  await house.tell({ type: "ChannelDispatchRetryRequested", data: { event_id, source, channel } });
}

/** Of a network that is well again: longer than any wait, with a clock that was set back meanwhile. */
const HOURS_MAX = 60;

/** An hour after another, until nothing is pending. */
async function settle(house: House, clock: () => number): Promise<void> {
  const chat = () => house.projector.state("deliveries").chat;
  for (let hour = 0; pendingOf(chat()) > 0; hour++) {
    if (hour > HOURS_MAX) throw new Error(`after ${hour} hours ${pendingOf(chat())} are pending`);
    if (chat().stopped !== null) await house.tell(RESUME);
    await house.until(clock() + HOUR_MS);
  }
}

function countsOf(log: readonly Recorded[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { type } of log.filter(isFinal)) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}
