import type { Recipient } from "../../../events/outreach.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { SocialError } from "../../../src/networks/network.ts";
import { nextDayAt } from "../../../src/outreach/quota-day.ts";
import type { RunSelection } from "../../../src/outreach/quota-and-reasons-to-end-run.ts";
import type { SimulatedNetwork } from "../../harness/in-process/social-network.ts";
import { authorize, METADATA, SECOND, type House } from "./simulated-world.ts";
import type { Instance } from "./instance.ts";
import type { Fate } from "./simulated-process.ts";
import { homeOf, personId } from "./initial-state.ts";
import { nextEdge } from "./sending-window-by-wall-clock.ts";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** Maximum number of simulated processes that share the log, as behind a load balancer. */
export const INSTANCES_MAX = 3;

export function chosen(house: House, index: number): Instance | undefined {
  const living = house.instances();
  return living[index % Math.max(1, living.length)];
}

/** Ignores the outcome of a request to a process, because the process may die and its caller then gets no answer. */
export function unattended(work: PromiseLike<unknown>): void {
  work.then(undefined, () => {});
}

/** Returns a process that can take a request. If all are paused or dead, starts one. */
export async function listening(house: House, index: number): Promise<Instance> {
  const awake = house.instances().filter(({ process }) => !process.isPaused());
  return awake[index % Math.max(1, awake.length)] ?? start(house);
}

/**
 * Starts a process, which first closes runs that dead processes left open. Only if it owns the log may it take their
 * leases at once, because then no other process can live.
 */
export async function start(house: House): Promise<Instance> {
  const isAlone = house.instances().length === 0 && house.setting.isOwned;
  const instance = await house.start();
  unattended(instance.runner.recover({ steal: isAlone }));
  return instance;
}

export function trigger({ runner, look }: Instance, dryRun: boolean, selection: RunSelection = {}): void {
  unattended(look().then(() => runner.trigger({ dryRun, selection, metadata: METADATA })));
}

/** Recipients that a caller names for a run, and how. */
export interface Naming {
  readonly which: number;
  readonly people: readonly number[];
  readonly byId: boolean;
  readonly dryRun: boolean;
  readonly selection: RunSelection;
}

/** Simulates a caller who requests a run for named recipients. If a run is in progress, the recipients may join it. */
export async function triggerNamed(house: House, { which, people, byId, dryRun, selection }: Naming): Promise<void> {
  const recipients = people.map((index) => named(house, index, byId));
  const { runner, look } = await listening(house, which);
  const request = { dryRun, selection, recipients, metadata: METADATA };
  unattended(look().then(() => runner.trigger(request)));
}

/** Sets the clock to shortly before the sending window next opens or closes in a time zone. */
export function jumpToEdge(house: House, { beforeMs, home }: { beforeMs: number; home: boolean }): void {
  const { window } = house.setting;
  if (window === undefined) return;
  const zone = home ? (homeOf(personId(1)) ?? house.timezone) : house.timezone;
  const now = house.clock();
  house.jump(nextEdge(window.text, zone, now) - beforeMs - now);
}

/**
 * A process dies during its run, or pauses for longer than its lease lasts, while another one takes over its runs. A
 * paused process then continues as if nothing had happened.
 */
export async function overtake(house: House, { wait, ...fate }: Fate & { readonly wait: number }) {
  const { clockwork } = house;
  const slow = await listening(house, 0);
  slow.process.meet(fate);
  trigger(slow, false);
  await clockwork.pass(MINUTE_MS);
  if (house.instances().length < INSTANCES_MAX) trigger(await start(house), false);
  await clockwork.pass(wait);
  slow.process.resume();
}

/** A fault of one read from the network. A number stands for a 429 that asks to wait that many ms. */
export type ReadFault = "unavailable" | "unauthorized" | "credits_depleted" | number | undefined;

export function faultOf(fault: ReadFault, house: House): SocialError | undefined {
  if (fault === undefined) return undefined;
  if (typeof fault === "number") return new SocialError("rate_limited", "wait", { retryAt: house.clock() + fault });
  return fault === "credits_depleted"
    ? new SocialError("stopped", "no credits", { stop: fault })
    : new SocialError(fault, "told so");
}

/** A run waits for the network's answer while the operator links a second account, and perhaps the first one again. */
export async function linkSecond(house: House, { which, isLinkedBack }: { which: number; isLinkedBack: boolean }) {
  house.network.answers.unshift({ waitMs: MINUTE_MS });
  trigger(await listening(house, which), false);
  await house.clockwork.pass(MINUTE_MS / 2);
  await authorize(house, SECOND);
  await house.clockwork.pass(MINUTE_MS);
  if (isLinkedBack) await authorize(house);
}

/** Names a person as an operator does: by id if `byId` or if their handle has changed, else by handle. */
export function named({ people, network }: House, index: number, byId: boolean): Recipient {
  const id = personId(index % people.length);
  return naming(network, id, byId);
}

export function naming({ people }: SimulatedNetwork, id: string, byId: boolean): Recipient {
  const username = `user_${id}`;
  return byId || (people.get(id)?.username ?? username) !== username ? { id } : { username };
}

export function suppression(recipient: Recipient): NewEvent {
  return { type: "RecipientSuppressed", data: { recipient, reason: "by_hand" } };
}

/** A person writes to us; "stop" is an opt-out that has to be honoured. */
export function writeToUs(house: House, index: number, { text, lateMs }: { text: string; lateMs: number }): void {
  const id = personId(index % house.people.length);
  house.network.receive(id, text, lateMs);
  if (text.toLowerCase() === "stop") house.witness.optOut(id, lateMs);
}

/** A person opts out on the page that a message to them links. */
export async function optOutOnPage(house: House, id: string, which: number): Promise<void> {
  const instance = await listening(house, which);
  const pressed = instance.look().then(() => instance.pressOptOut(id, METADATA));
  unattended(pressed.then((isAnswered) => isAnswered && house.witness.answerOptOut(id)));
}

/**
 * Sets the clock to shortly before the next midnight of the quota's zone or, with `back`, before the last midnight but
 * one.
 */
export function jumpToMidnight(house: House, { beforeMs, back }: { beforeMs: number; back: boolean }): void {
  const now = house.clock();
  const midnight = nextDayAt(house.timezone, back ? now - 48 * HOUR_MS : now);
  house.jump(midnight - beforeMs - now);
}
