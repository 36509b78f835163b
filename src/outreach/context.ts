import type { Credentials } from "../account/tokens.ts";
import type { DataOf } from "../../events/catalog.ts";
import type { PauseReason, Recipient, RecipientSource } from "../../events/outreach.ts";
import type { Clock } from "../platform/clock.ts";
import type { EventMetadata, PartDeps } from "../log/event-log.ts";
import type { HeldLease } from "../log/lease.ts";
import type { Prices, SocialNetwork, SocialUser } from "../networks/network.ts";
import type { OutreachRules, OutreachState } from "./decide.ts";
import { isoTime } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { newestMs } from "../../projections/quota.ts";
import { momentIn } from "./quota-day.ts";
import type { Wish } from "./stop-words.ts";
import type { TurnMoment } from "./send-window.ts";

/** A recipient who may get a message; `user` where the source already asked the network. */
export interface BatchEntry {
  readonly recipient: Recipient;
  readonly user?: SocialUser;
}

/** Recipients asked of the network at once: what one look-up takes. */
export const LOOKUP_BATCH = 100;

export interface Batch {
  readonly entries: readonly BatchEntry[];
  /** Recorded once all of the batch were judged, so that a later run goes on behind it. */
  readonly read?: Omit<DataOf<"SourceRead">, "run_id">;
}

/** Where recipients come from: batches of at most {@link LOOKUP_BATCH}, read only as far as they are wanted. */
export interface Source {
  /** `again` and `last` give recipients of an earlier run once more. */
  readonly name: RecipientSource | "again" | "last";
  /** Throws the network's SocialError. */
  batches(reader: Reader): AsyncIterable<Batch>;
}

/** Runs a read with the caller's retry policy. */
export type RetryPolicy = <T>(ask: () => Promise<T>) => Promise<T>;

/** Who reads a source, and how much of it. */
export interface Reader {
  readonly run: RunContext;
  readonly retry: RetryPolicy;
  /** Places left of the day's quota, 1 to {@link LOOKUP_BATCH}: to read more recipients than that costs money for nothing. */
  wanted(): number;
}

/** Everything outreach works with; effects and settings are values, so that tests bring their own. */
export interface OutreachContext extends PartDeps {
  readonly network: SocialNetwork;
  readonly credentials: Credentials;
  /** In the order in which they are merged. */
  readonly sources: readonly Source[];
  readonly rules: OutreachRules;
  readonly timezone: string;
  readonly runMaxMs: number;
  readonly settleMs: number;
  /** Says if a message to us asks for no more messages, or may ask for it. */
  readonly readWish: (text: string) => Wish | undefined;
  /** Whether it asks only that clicks are no longer recorded. */
  readonly isTrackingOptOut: (text: string) => boolean;
  readonly prices: Prices;
  /** A random text that the codes of one recipient's own links follow from. Undefined: all recipients share links. */
  readonly newLinkSecret: (() => string) | undefined;
  /** Fixed spacing between sends; undefined: by the network's headers. */
  readonly spacingMs: number | undefined;
  /** Names this process in the run's lease. */
  readonly holder: string;
  readonly leaseScale?: number | undefined;
  /** The machine's own: only a lease asks it. */
  readonly wallClock?: Clock | undefined;
  /** How far the machine's clock is ahead of the log's time, or behind it. */
  readonly skewMs: () => number;
}

/** All states that a run reads from its start to its end. */
export const RUN_STATES = ["run", "quota", "contacts", "account", "links", "inbox", "sources", "restores"] as const;

/**
 * Throws ProjectionFolding while one of the states that a run reads is folded from the log: the run would end in the midst
 * of its work.
 */
export function requireRunStates({ projector }: Pick<OutreachContext, "projector">): void {
  for (const name of RUN_STATES) projector.state(name);
}

/** The state that decisions are made from: all projections stand at one position. */
export function outreachState({ projector }: Pick<OutreachContext, "projector">): OutreachState {
  return {
    run: projector.state("run"),
    quota: projector.state("quota"),
    contacts: projector.state("contacts"),
    account: projector.state("account"),
    links: projector.state("links"),
  };
}

/** Now, as the quota and the sending window count it. */
export function quotaNow(context: Pick<OutreachContext, "projector" | "clock" | "timezone">): TurnMoment {
  const { projector, clock, timezone } = context;
  // Never before the newest event: a clock set back does not bring back yesterday's quota.
  const ms = Math.max(clock(), newestMs(projector.state("quota"), projector.time));
  return { ...momentIn(timezone, ms), clockMs: clock() };
}

/**
 * When the newest event was recorded, ISO 8601, or when the log's time was corrected after that; undefined in an empty log,
 * and while the quota is folded from the log.
 */
export function newestTime(projector: Pick<Projector, "state" | "isFolded" | "time">): string | undefined {
  if (projector.time === undefined || !projector.isFolded("quota")) return projector.time;
  return isoTime(newestMs(projector.state("quota"), projector.time));
}

/** Waits until the projections have seen all that is in the log now, e.g. after a version conflict. */
export async function waitForProjections({ eventLog, projector }: OutreachContext): Promise<void> {
  await projector.until((await eventLog.store.head()).position);
}

/** Lets work wait for the network, until it has to end. */
export interface Waiting {
  /** Aborts when the work must end: a run between two messages, at shutdown, a request to stop, its time limit, a lost lease. */
  readonly signal: AbortSignal;
  /** Until a time in ms since the epoch; less when the signal aborts. */
  readonly pause: (reason: PauseReason, until: number) => Promise<void>;
}

export interface RunContext extends OutreachContext, Waiting {
  readonly runId: string;
  /** Whose run it is; another account that is linked meanwhile gets none of it. */
  readonly accountId: string | undefined;
  /** The right to make runs. */
  readonly lease: HeldLease;
  readonly metadata: EventMetadata;
}

/** How often a run decides at the most: an import beside it appends to the same stream all the time. */
export const RUN_ATTEMPTS_MAX = 50;
