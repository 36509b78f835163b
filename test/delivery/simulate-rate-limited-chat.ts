import { expect } from "bun:test";
import { pendingOf } from "../../projections/deliveries.ts";
import { DELIVERED, fakeChannel, throttled } from "../harness/in-process/fake-channel.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { openDelivery } from "../harness/in-process/delivery.ts";
import { outcomesIn } from "../harness/in-process/dispatch-outcome-events.ts";

const DIGEST_AFTER_MS = 30_000;

/** Seconds by which the test's clock advances in each step. All clicks of a step arrive together. */
const STEP_S = 2;

/**
 * Number of messages that Slack is assumed to accept in a burst: "1 per second, short bursts allowed"
 * (https://api.slack.com/apis/rate-limits).
 */
const BURST = 5;

export interface HoursReport {
  readonly clicks: number;
  readonly messages: number;
  readonly digests: number;
  readonly refusals: number;
  /** Maximum number of answers with 429 in one minute, without the first minute. */
  readonly refusalsAMinute: number;
  /** Maximum time from a click to its outcome, in seconds. */
  readonly lagMaxS: number;
}

/**
 * Simulates `hours` of a chat that accepts one message a second and gets `perSecond` clicks. The log and the dispatcher
 * are real; the test moves their clock as fast as the machine can.
 */
export async function slackHours(hours: number, perSecond: number): Promise<HoursReport> {
  const time = fakeTime();
  const from = time.clock();
  const refusedAt: number[] = [];
  let [tokens, filledAt] = [BURST, from];
  const chat = fakeChannel("chat", () => {
    tokens = Math.min(BURST, tokens + (time.clock() - filledAt) / 1_000);
    filledAt = time.clock();
    if (tokens >= 1) {
      tokens -= 1;
      return DELIVERED;
    }
    refusedAt.push(time.clock() - from);
    return throttled(1_000);
  });
  await using house = await openDelivery({ channels: [chat], time, digestAfterMs: DIGEST_AFTER_MS });
  const clicks = hours * 3_600 * perSecond;
  for (let second = 0; second < hours * 3_600; second += STEP_S) {
    await house.clicks(perSecond * STEP_S);
    await house.until(from + (second + STEP_S) * 1_000);
  }
  time.flow();
  await house.settled();

  const { chat: state } = house.projector.state("deliveries");
  expect([state.dispatched, state.in_doubt, state.dead, pendingOf(state)]).toEqual([clicks, 0, 0, 0]);
  const later = Map.groupBy(
    refusedAt.filter((at) => at >= 60_000),
    (at) => Math.floor(at / 60_000),
  );
  return {
    clicks,
    messages: chat.sent.length - refusedAt.length,
    digests: chat.sent.filter(({ kind }) => kind === "digest").length,
    refusals: refusedAt.length,
    refusalsAMinute: Math.max(0, ...[...later.values()].map(({ length }) => length)),
    lagMaxS: await longestLag(house),
  };
}

async function longestLag({ eventLog }: Awaited<ReturnType<typeof openDelivery>>): Promise<number> {
  const clickedAt = new Map<number, number>();
  let longest = 0;
  for await (const event of eventLog.store.read({ types: ["LinkClicked", "DispatchSucceeded"] })) {
    if (event.type === "LinkClicked") clickedAt.set(event.position, Date.parse(event.time));
    if (event.type !== "DispatchSucceeded") continue;
    for (const { data, time } of outcomesIn([event])) {
      longest = Math.max(longest, Date.parse(time) - (clickedAt.get(data.source) ?? 0));
      clickedAt.delete(data.source);
    }
  }
  return longest / 1_000;
}
