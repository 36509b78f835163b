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

/** A recipient who may get a message. `user` is present if the source has already asked the network. */
export interface BatchEntry {
  readonly recipient: Recipient;
  readonly user?: SocialUser;
}

/** Most recipients that one look-up of the network takes. */
export const LOOKUP_BATCH = 100;

export interface Batch {
  readonly entries: readonly BatchEntry[];
  /** Recorded once the whole batch was judged, so that a later run continues after it. */
  readonly read?: Omit<DataOf<"SourceRead">, "run_id">;
}

/** A source of recipients: batches of at most {@link LOOKUP_BATCH}, read only while more are wanted. */
export interface Source {
  /** `again` and `last` yield recipients of an earlier run once more. */
  readonly name: RecipientSource | "again" | "last";
  /** Throws the network's SocialError. */
  batches(reader: Reader): AsyncIterable<Batch>;
}

/** Runs a read with the caller's retry policy. */
export type RetryPolicy = <T>(ask: () => Promise<T>) => Promise<T>;

/** The run that reads a source, and how many recipients it wants. */
export interface Reader {
  readonly run: RunContext;
  readonly retry: RetryPolicy;
  /**
   * Places left of the day's quota, 1 to {@link LOOKUP_BATCH}. Reading more recipients than that costs money for
   * nothing.
   */
  wanted(): number;
}

/** Everything outreach works with. Effects and settings are values, so that tests can replace them. */
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
  /** True if a message to us asks only that clicks are no longer recorded. */
  readonly isTrackingOptOut: (text: string) => boolean;
  readonly prices: Prices;
  /**
   * Returns a random text from which the codes of one recipient's own links are derived. Undefined: all share links.
   */
  readonly newLinkSecret: (() => string) | undefined;
  /** Fixed time between two sends. Undefined: it follows the network's headers. */
  readonly spacingMs: number | undefined;
  /** Names this process in the run's lease. */
  readonly holder: string;
  readonly leaseScale?: number | undefined;
  /** The machine's own clock, which only leases use. */
  readonly wallClock?: Clock | undefined;
  /** Returns how far the machine's clock is ahead of the log's time; negative if it is behind. */
  readonly skewMs: () => number;
}

/** All states that a run reads from its start to its end. */
export const RUN_STATES = ["run", "quota", "contacts", "account", "links", "inbox", "sources", "restores"] as const;

/**
 * Throws ProjectionFolding while a state that a run reads is still being folded from the log. Otherwise the run would
 * end midway.
 */
export function requireRunStates({ projector }: Pick<OutreachContext, "projector">): void {
  for (const name of RUN_STATES) projector.state(name);
}

/** Returns the state from which decisions are made, with all projections at the same position. */
export function outreachState({ projector }: Pick<OutreachContext, "projector">): OutreachState {
  return {
    run: projector.state("run"),
    quota: projector.state("quota"),
    contacts: projector.state("contacts"),
    account: projector.state("account"),
    links: projector.state("links"),
  };
}

/** Returns the current moment for the quota and the sending window. */
export function quotaNow(context: Pick<OutreachContext, "projector" | "clock" | "timezone">): TurnMoment {
  const { projector, clock, timezone } = context;
  // Never before the newest event, so that a clock that was set back does not restore yesterday's quota.
  const ms = Math.max(clock(), newestMs(projector.state("quota"), projector.time));
  return { ...momentIn(timezone, ms), clockMs: clock() };
}

/**
 * Returns when the newest event was recorded, or when the log's time was corrected after that, ISO 8601. Ignores such a
 * correction while the quota is being folded. Undefined in an empty log.
 */
export function newestTime(projector: Pick<Projector, "state" | "isFolded" | "time">): string | undefined {
  if (projector.time === undefined || !projector.isFolded("quota")) return projector.time;
  return isoTime(newestMs(projector.state("quota"), projector.time));
}

/** Waits until the projections hold everything that is in the log now, e.g. after a version conflict. */
export async function waitForProjections({ eventLog, projector }: OutreachContext): Promise<void> {
  await projector.until((await eventLog.store.head()).position);
}

/** Lets work wait for the network until the work must end. */
export interface Waiting {
  /**
   * Aborts when the work must end. A run ends between two messages: at shutdown, after a request to stop, at its time
   * limit, or when its lease is lost.
   */
  readonly signal: AbortSignal;
  /** Waits until a time in ms since the epoch, or less if the signal aborts. */
  readonly pause: (reason: PauseReason, until: number) => Promise<void>;
}

export interface RunContext extends OutreachContext, Waiting {
  readonly runId: string;
  /** The account whose run it is. An account that is linked meanwhile gets none of it. */
  readonly accountId: string | undefined;
  /** The right to make runs. */
  readonly lease: HeldLease;
  readonly metadata: EventMetadata;
}

/** Most attempts at one decision of a run, because an import may append to the same stream all the time. */
export const RUN_ATTEMPTS_MAX = 50;
