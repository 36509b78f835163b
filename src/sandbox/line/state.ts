import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";

export interface LineMessage {
  readonly to: string;
  readonly text: string;
  readonly at: number;
}

/** A push that was taken. */
export interface Accepted {
  readonly requestId: string;
  readonly sentMessages: readonly { readonly id: string; readonly quoteToken: string }[];
  readonly at: number;
}

export interface LineState {
  readonly clock: SandboxClock;
  readonly accessToken: string;
  /** The only user who is there. */
  readonly to: string;
  readonly messages: Arrivals<LineMessage>;
  /** By retry key. */
  readonly accepted: Map<string, Accepted>;
  readonly bucket: Bucket;
  /** Requests in a second. */
  limit: number;
  /** Messages that the month still has. */
  quota: number;
}

/** https://developers.line.biz/en/reference/messaging-api/#rate-limits */
const DEFAULT_LIMIT = 2_000;
const PERIOD_MS = 1_000;

/** How long a retry key is known; https://developers.line.biz/en/docs/messaging-api/retrying-api-request/ */
const KEY_KNOWN_MS = 24 * 3_600_000;

export function createLineState(clock: SandboxClock): LineState {
  return {
    clock,
    accessToken: "SandboxLineChannelAccessToken0123456789",
    to: "U0123456789abcdef0123456789abcdef",
    messages: createArrivals(TEXTS_KEPT),
    accepted: new Map(),
    bucket: createBucket(),
    limit: DEFAULT_LIMIT,
    quota: Infinity,
  };
}

/** Whether one more request is allowed now; counted if so. */
export function takeTurn({ bucket, limit, clock }: LineState): boolean {
  const rate = { limit, periodMs: PERIOD_MS };
  if (bucket.waitMs(clock.now(), rate) > 0) return false;
  bucket.take(clock.now(), rate);
  return true;
}

/** What was accepted under this key, while LINE still knows it. */
export function acceptedBefore({ accepted, clock }: LineState, key: string): Accepted | undefined {
  const before = accepted.get(key);
  return before !== undefined && clock.now() - before.at < KEY_KNOWN_MS ? before : undefined;
}
