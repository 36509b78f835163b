import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";

export interface WhatsappMessage {
  readonly to: string;
  readonly text: string;
  /** What the person sees of it. */
  readonly shown: string;
  readonly marks: readonly string[];
  readonly at: number;
}

export interface WhatsappState {
  readonly clock: SandboxClock;
  readonly phoneNumberId: string;
  readonly accessToken: string;
  /** The only person who is on WhatsApp, digits alone. */
  readonly to: string;
  readonly messages: Arrivals<WhatsappMessage>;
  readonly numberBucket: Bucket;
  readonly pairBucket: Bucket;
  /** Messages of the number in a second. */
  limit: number;
  /** Messages to the person in 4.5 minutes, at once or spread. */
  pairLimit: number;
  /** When the person last wrote to the number, ms since the epoch: text is taken for 24 hours from then on. */
  wroteAt: number;
}

/** https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput */
const DEFAULT_LIMIT = 80;
const PERIOD_MS = 1_000;

/** One in 6 seconds, in bursts of 45 that are paid back by waiting. */
const PAIR_BURST = 45;
const PAIR_PERIOD_MS = PAIR_BURST * 6_000;

export function createWhatsappState(clock: SandboxClock): WhatsappState {
  return {
    clock,
    phoneNumberId: "106540352242922",
    accessToken: "EAASandboxWhatsappToken0123456789",
    to: "15550783881",
    messages: createArrivals(TEXTS_KEPT),
    numberBucket: createBucket(),
    pairBucket: createBucket(),
    limit: DEFAULT_LIMIT,
    pairLimit: PAIR_BURST,
    wroteAt: clock.now(),
  };
}

/** Counts one message. Gives the code of the limit when it is one too many. */
export function takeTurn(state: WhatsappState): 130_429 | 131_056 | undefined {
  const now = state.clock.now();
  const number = { limit: state.limit, periodMs: PERIOD_MS };
  const pair = { limit: state.pairLimit, periodMs: PAIR_PERIOD_MS };
  if (state.numberBucket.waitMs(now, number) > 0) return 130_429;
  if (state.pairBucket.waitMs(now, pair) > 0) return 131_056;
  state.numberBucket.take(now, number);
  state.pairBucket.take(now, pair);
  return undefined;
}
