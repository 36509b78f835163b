import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";

export interface TelegramMessage {
  readonly chat_id: string;
  readonly text: string;
  /** What readers see. */
  readonly shown: string;
  readonly marks: readonly string[];
  readonly at: number;
}

export interface TelegramState {
  readonly clock: SandboxClock;
  readonly botToken: string;
  readonly chatId: string;
  readonly messages: Arrivals<TelegramMessage>;
  readonly chatBucket: Bucket;
  readonly groupBucket: Bucket;
  /** Messages to one chat in 5 seconds, at once or spread; a group takes four times as many in a minute. */
  limit: number;
  /** The group became a supergroup with this id: the old one is refused. */
  migratedTo: string | undefined;
}

/** About one a second in a chat, with short bursts, and 20 a minute in a group: https://core.telegram.org/bots/faq */
const DEFAULT_LIMIT = 5;
const CHAT_PERIOD_MS = 5_000;
const GROUP_PERIOD_MS = 60_000;
const GROUP_FACTOR = 4;

export function createTelegramState(clock: SandboxClock): TelegramState {
  return {
    clock,
    botToken: "1234567890:AASandboxTelegramToken_0123456789abc",
    chatId: "-1009876543210",
    messages: createArrivals(TEXTS_KEPT),
    chatBucket: createBucket(),
    groupBucket: createBucket(),
    limit: DEFAULT_LIMIT,
    migratedTo: undefined,
  };
}

/** Counts one message to the chat. Gives the ms to wait when it is one too many, else 0. */
export function takeTurn({ chatBucket, groupBucket, limit, clock }: TelegramState, chatId: string): number {
  const now = clock.now();
  const turns = [{ bucket: chatBucket, rate: { limit, periodMs: CHAT_PERIOD_MS } }];
  // Groups have negative ids.
  if (chatId.startsWith("-")) {
    turns.push({ bucket: groupBucket, rate: { limit: GROUP_FACTOR * limit, periodMs: GROUP_PERIOD_MS } });
  }
  const wait = Math.max(...turns.map(({ bucket, rate }) => bucket.waitMs(now, rate)));
  if (wait === 0) for (const { bucket, rate } of turns) bucket.take(now, rate);
  return wait;
}
