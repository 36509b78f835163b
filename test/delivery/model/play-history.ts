import { expect } from "bun:test";
import { StoreFull } from "eventstore-lite/testing";
import type { EventType, Recorded } from "../../../events/event-types-and-codec.ts";
import { CHANNELS, CLICK_CHANNELS, type ChannelName } from "../../../events/channel-and-lane-names.ts";
import { deliveries, findChannel, pendingOf } from "../../../projections/deliveries.ts";
import { encodeState } from "../../../projections/encode-state.ts";
import { WINDOW_MAX } from "../../../src/delivery/pace-and-circuit-breaker.ts";
import { STREAMS, type NewEvent, type EventLog } from "../../../src/log/event-log.ts";
import { newLogFile } from "../../harness/in-process/temporary-log.ts";
import { fakeTime } from "../../harness/in-process/fake-time.ts";
import { listLetters } from "../../harness/in-process/list-dead-letters.ts";
import { openDelivery, type DeliveryHarness } from "../../harness/in-process/delivery.ts";
import { auditLog, auditOrder, auditTruth } from "./check-log-after-history.ts";
import { outcomesIn } from "../../harness/in-process/dispatch-outcome-events.ts";
import { createRandom } from "../../harness/random.ts";
import type { Kind } from "./network-answers.ts";
import { createNetwork, type Life, type Network } from "./network.ts";
import { HOUR_MS, SUBSCRIPTIONS, type History, type Step } from "./generate-delivery-histories.ts";
import { createWatch, isFinal, keysByPosition, type Watch } from "./check-requests.ts";

export interface Lived {
  readonly requests: number;
  readonly kills: number;
  /**
   * Number of times that the dispatcher re-read its lanes (queues) from the log while the disk was full and the outcome
   * of a request was not recorded yet.
   */
  readonly reopenedUntold: number;
  readonly outcomes: ReadonlyMap<string, number>;
}

/** A channel of a random history, with its simulated network and the watch that checks its requests. */
interface Line {
  readonly name: ChannelName;
  readonly kind: Kind;
  readonly network: Network;
  readonly watch: Watch;
}

/**
 * Plays a random history of the service, lets everything end, and compares the log with what the simulated networks
 * received.
 */
export async function live({ seed, kinds, digestAfterMs, faults, steps }: History): Promise<Lived> {
  const file = newLogFile();
  const time = fakeTime();
  const random = createRandom(seed);
  let [requests, kills, ghosts, named, credential, reopenedUntold] = [0, 0, 0, 0, 0, 0];
  let isFull = false;
  let house: DeliveryHarness | undefined;
  let life: Life = { killed: false, refused: new Set(), ending: false, beginning: undefined };

  const lines = [...kinds].map(([name, kind]): Line => {
    const watch = createWatch(name);
    const network = createNetwork(name, kind, time, random, (request) => {
      requests++;
      const position = house?.projector.position ?? 0;
      const isSuspended =
        house !== undefined && findChannel(house.projector.state("deliveries"), name).suspended !== null;
      watch.request(request, time.clock(), { position, isSuspended });
    });
    return { name, kind, network, watch };
  });
  const names = lines.map(({ name }) => name);

  const wrapFor =
    (of: Life) =>
    (eventLog: EventLog): EventLog => ({
      ...eventLog,
      async append(...args) {
        const fault = random() * 100;
        const channel = CHANNELS.find((name) => STREAMS.delivery(name) === args[0]);
        if (channel !== undefined && (isFull || fault < faults)) of.refused.add(channel);
        if (of.killed || isFull || fault < faults / 2) throw new StoreFull();
        const appended = await eventLog.append(...args);
        if (!of.killed && fault >= faults) return appended;
        ghosts++;
        throw new StoreFull();
      },
    });

  const begin = async (): Promise<DeliveryHarness> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    life = { killed: false, refused: new Set(), ending: false, beginning: promise };
    const opened = await openDelivery({
      file,
      time,
      random,
      wrap: wrapFor(life),
      channels: lines.map(({ network }) => network.channel(life, `credential ${credential}`)),
      ...(digestAfterMs === undefined ? {} : { digestAfterMs }),
    });
    house = opened;
    const log = await logOf(opened);
    for (const { watch } of lines) watch.begin(log);
    life.beginning = undefined;
    resolve();
    return opened;
  };

  const end = async (current: DeliveryHarness): Promise<void> => {
    life.ending = true;
    for (const { network } of lines) network.release();
    await current[Symbol.asyncDispose]();
    house = undefined;
  };

  const take = async (current: DeliveryHarness, one: Step): Promise<DeliveryHarness> => {
    switch (one.do) {
      case "click":
        await current.append(...Array.from({ length: one.count }, () => clickOf(`c${named++}`, names)));
        return current;
      case "notify":
        await current.append(...Array.from({ length: one.count }, () => textOf(`n${named++}`, names)));
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
      case "fill":
      case "free":
        isFull = one.do === "fill";
        return current;
      case "reopen":
        if (isFull && life.refused.size > 0) reopenedUntold++;
        await current.append(await reopeningOf(current, one.by));
        return current;
      case "resume":
        await resumeAll(current, names);
        return current;
      case "subscribe":
        if (kinds.has("webhook")) await current.append(subscribed(one.types));
        return current;
      case "retry":
        await retryOne(current, lines);
        return current;
    }
  };

  let current = await begin();
  if (kinds.has("webhook")) await current.append(subscribed(SUBSCRIPTIONS[0]));
  try {
    for (const one of steps) current = await take(current, one);
    faults = 0;
    isFull = false;
    for (const { network } of lines) network.heal();
    await settle(current, names, time.clock);
    const log = await logOf(current);
    for (const line of lines) audit(current, log, line, ghosts);
    return { requests, kills, reopenedUntold, outcomes: countsOf(log) };
  } finally {
    await end(current);
  }
}

function audit(
  house: DeliveryHarness,
  log: readonly Recorded[],
  { name, kind, network, watch }: Line,
  ghosts: number,
): void {
  expect(network.inFlightMax).toBeLessThanOrEqual(WINDOW_MAX);
  watch.begin(log);
  auditLog(log, name, { state: findChannel(house.projector.state("deliveries"), name), ghosts });
  if (kind.isInOrder === true) auditOrder(log, name);
  const recognises = kind.recognisesMs !== undefined;
  auditTruth(log, name, network.taken, { exposed: watch.exposed, recognises });
  if (watch.broken.length > 0) throw new Error(`${name}: ${watch.broken.join("\n")}`);
}

export const subscribed = (types: readonly EventType[]): NewEvent => {
  return { type: "WebhookSubscribed", data: { types: [...types], receiver: "mark" } };
};

export function clickOf(short_code: string, names: readonly ChannelName[]): NewEvent {
  const channels = CLICK_CHANNELS.filter((name) => names.includes(name));
  const link = { event: "click", domain: "go.example", short_code, original_url: "https://example.com", bot: false };
  return { type: "LinkClicked", data: { ...link, channels } };
}

/**
 * Creates the request for a text that is sent directly: to chat, or every other time to messaging if it is configured.
 */
export function textOf(text: string, channels: readonly ChannelName[]): NewEvent {
  if (channels.includes("messaging") && Number(text.slice(1)) % 2 === 1) {
    return { type: "MessageRequested", data: { text } };
  }
  return { type: "NotificationRequested", data: { message: text, service: "model", level: "info" } };
}

/**
 * Creates an event after which the dispatcher reads its lanes (queues) from the log again: an erasure, an expiry of
 * personal data, or a rebuild of the projection `deliveries`. The rebuild here changes no state.
 */
async function reopeningOf(
  { eventLog, projector }: DeliveryHarness,
  by: Extract<Step, { do: "reopen" }>["by"],
): Promise<NewEvent> {
  if (by === "PersonForgotten") return { type: by, data: { hashes: [], keys: [] } };
  if (by === "PersonalDataExpired") return { type: by, data: { before: "2026-11-01", days: 1 } };
  const { position } = projector;
  const { name: projection, version } = deliveries;
  const state = encodeState(projector.state("deliveries"));
  await eventLog.store.snapshots.save(`rebuilt/${projection}`, { version, position, state });
  return { type: by, data: { projection, version, position, differences: 0 } };
}

export async function logOf({ eventLog }: DeliveryHarness): Promise<readonly Recorded[]> {
  return (await Array.fromAsync(eventLog.store.read())) as Recorded[];
}

/** Retries the newest dead letter, as an operator does. */
async function retryOne(house: DeliveryHarness, lines: readonly Line[]): Promise<void> {
  const letter = (await listLetters(house.eventLog.store, house.projector)).at(-1);
  if (letter === undefined) return;
  const { event_id, source, channel, doubtful_since } = letter;
  const key = keysByPosition(await logOf(house)).get(source) ?? "";
  lines.find(({ name }) => name === channel)?.watch.reowed(key);
  const doubt = doubtful_since === null ? {} : { doubtful_since };
  await house.append({ type: "DispatchRetryRequested", data: { event_id, source, channel, ...doubt } });
}

export async function resumeAll(house: DeliveryHarness, names: readonly ChannelName[]): Promise<void> {
  for (const channel of names) {
    if (findChannel(house.projector.state("deliveries"), channel).suspended === null) continue;
    await house.append({ type: "ChannelResumed", data: { channel, why: "by_hand" } });
  }
}

/**
 * Maximum number of hours until everything is settled: longer than any wait for a network that works again, even after
 * the clock was set back.
 */
const HOURS_MAX = 60;

/** Lets time pass hour by hour until nothing is pending. */
async function settle(house: DeliveryHarness, names: readonly ChannelName[], clock: () => number): Promise<void> {
  const pending = (): number =>
    names.reduce((sum, name) => sum + pendingOf(findChannel(house.projector.state("deliveries"), name)), 0);
  for (let hour = 0; pending() > 0; hour++) {
    if (hour > HOURS_MAX) throw new Error(`after ${hour} hours ${pending()} are pending`);
    await resumeAll(house, names);
    await house.until(clock() + HOUR_MS);
  }
}

function countsOf(log: readonly Recorded[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { type } of outcomesIn(log).filter(isFinal)) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}
