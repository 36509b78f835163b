import * as fc from "fast-check";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { HOUR_MS, listening, MINUTE_MS, trigger, writeToUs } from "./perform-acts.ts";
import { CAMPAIGNS, SPRING_GAP_DAYS } from "./campaign-rules.ts";
import type { House } from "./simulated-world.ts";
import { hold } from "./operator-suppressions-and-holds.ts";

const DAY_MS = 24 * HOUR_MS;

export const campaign = fc.constantFrom<(string | undefined)[]>(undefined, ...Object.keys(CAMPAIGNS));

/**
 * Time in ms between two runs of campaigns: less than GAP_DAYS, slightly more than it (twice as likely), and slightly
 * more than SPRING_GAP_DAYS.
 */
const apart = fc.constantFrom(DAY_MS, 2 * DAY_MS + HOUR_MS, 2 * DAY_MS + HOUR_MS, 4 * DAY_MS + HOUR_MS);

/** Event that occurs between two messages to a person, or while the second one waits. */
const between = fc.constantFrom("nothing", "a reply", "an old reply", "a reply at the intent", "a hold at the intent");

const anyRuns = fc.array(fc.record({ campaign, apart, between, who: fc.nat(3) }), { minLength: 2, maxLength: 5 });

/**
 * Orders of campaigns. In the first two, the last campaign would send a third follow-up, which is one too many. The
 * third order alternates campaigns with different gaps.
 */
const ORDERS = [
  [undefined, "first", "second", "fourth"],
  [undefined, "first", "second", "third"],
  [undefined, "spring", undefined, "spring"],
] as const;

const ordered: typeof anyRuns = fc
  .record({ order: fc.constantFrom(...ORDERS), among: fc.nat(9), what: between, who: fc.nat(3) })
  .map(({ order, among, what, who }) =>
    order.map((name, at) => {
      const isHere = at === among;
      return { campaign: name, apart: 2 * DAY_MS + HOUR_MS, between: isHere ? what : "nothing", who } as const;
    }),
  );

export const chain = fc.record({ which: fc.nat(2), runs: fc.oneof(anyRuns, ordered) });

/** Makes runs of several campaigns, days apart. People reply between them, also while a message waits. */
export async function runChain(house: House, { which, runs }: typeof chain extends fc.Arbitrary<infer T> ? T : never) {
  for (const { campaign: name, apart: ms, between: what, who } of runs) {
    if (what === "a reply") writeToUs(house, who, { text: "hello", lateMs: 0 });
    await house.clockwork.pass(ms);
    if (what === "an old reply") writeToUs(house, who, { text: "hello", lateMs: 50_000 });
    if (what.endsWith("at the intent")) answerAtIntent(house, what.startsWith("a reply"));
    trigger(await listening(house, which), false, name === undefined ? {} : { campaign: name });
    await house.clockwork.pass(3 * MINUTE_MS);
  }
}

/**
 * After a run has decided to write to a person and before it appends the intent, appends that person's reply. If
 * `isReply` is false, appends an event that holds the person for an operator instead.
 */
export function answerAtIntent({ witness, network, append, clock }: House, isReply: boolean): void {
  witness.ambush(async (id) => {
    const event = isReply ? reply(id, network.receive(id, "hello"), clock()) : hold(network, id, clock());
    await append([event]);
  });
}

/** Makes a person reply after the intent to write to them is recorded, while the network delays the message. */
export async function answerWhileWaiting(house: House, { which, name }: { which: number; name: string | undefined }) {
  house.network.answers.unshift({ waitMs: MINUTE_MS });
  trigger(await listening(house, which), false, name === undefined ? {} : { campaign: name });
  await house.clockwork.pass(MINUTE_MS / 2);
  const id = house.network.asked.at(-1);
  if (id !== undefined) await house.append([reply(id, house.network.receive(id, "hello"), house.clock())]);
}

function reply(id: string, message_id: string, at: number): NewEvent {
  const data = { recipient: { id }, message_id, received_at: new Date(at).toISOString(), via: "stream" } as const;
  return { type: "DirectMessageReceived", data };
}

/** Lets the gap pass, so that the last runs may write to all. */
export async function passGap({ clockwork }: House): Promise<void> {
  await clockwork.pass(SPRING_GAP_DAYS * DAY_MS + HOUR_MS);
}
