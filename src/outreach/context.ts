import type { Credentials } from "../account/tokens.ts";
import type { DataOf } from "../../events/catalog.ts";
import type { PauseReason, Recipient, RecipientSource } from "../../events/outreach.ts";
import type { EventMetadata, StateContext } from "../log/event-log.ts";
import type { HeldLease } from "../log/lease.ts";
import type { Prices, SocialNetwork, SocialUser } from "../networks/network.ts";
import type { OutreachRules, OutreachState } from "./decide.ts";
import { isoTime } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { newestMs } from "../../projections/quota.ts";
import { momentIn } from "./quota-day.ts";
import { rulesForCampaign } from "./run-rules.ts";
import type { ReportEnd } from "./report/report.ts";
import type { Wish } from "./stop-words.ts";
import type { TurnMoment } from "./send-window.ts";

/**
 * A recipient in a batch of a source, who may get a message. `user`: the network's profile of them, if the source has
 * already asked for it.
 */
export interface BatchEntry {
  readonly recipient: Recipient;
  readonly user?: SocialUser;
}

/** Most recipients that one look-up of the network takes. */
export const LOOKUP_BATCH = 100;

export interface Batch {
  readonly entries: readonly BatchEntry[];
  /**
   * Data of the `SourceRead` event, which is recorded once the batch was judged. A later run continues reading the
   * source after it.
   */
  readonly read?: Omit<DataOf<"SourceRead">, "run_id">;
}

/**
 * A source of recipients, such as followers or an imported list. It yields batches of at most {@link LOOKUP_BATCH}, and
 * reads on only while the run wants more.
 */
export interface Source {
  /** Name of a source. `again` and `last` yield recipients of an earlier run once more. */
  readonly name: RecipientSource | "again" | "last";
  /** Yields the source's recipients in batches. Throws the network's SocialError. */
  batches(reader: Reader): AsyncIterable<Batch>;
}

/** Function that runs a read of the network, and repeats it as the caller decides. */
export type RetryPolicy = <T>(ask: () => Promise<T>) => Promise<T>;

/** The run that reads a source of recipients, its retries, and how many recipients it wants. */
export interface Reader {
  readonly run: RunContext;
  readonly retry: RetryPolicy;
  /**
   * Places left of the day's quota, 1 to {@link LOOKUP_BATCH}. Reading more recipients than that costs money for
   * nothing.
   */
  wanted(): number;
}

/** A log, and the time zone in which the days of its quota begin. */
export interface QuotaContext extends StateContext {
  readonly timezone: string;
}

/** Rules for reading messages that recipients send us: the stop words, and what an opt-out means. */
export interface ReplyRules {
  readonly rules: OutreachRules;
  /** Returns the sender's wish if a message to us asks for no more messages, or may ask for it; else undefined. */
  readonly readWish: (text: string) => Wish | undefined;
  /** True if a message to us asks only that clicks are no longer recorded. */
  readonly isTrackingOptOut: (text: string) => boolean;
}

/** Everything outreach works with. Effects and settings are values, so that tests can replace them. */
export interface OutreachContext extends QuotaContext, ReplyRules {
  readonly network: SocialNetwork;
  readonly credentials: Credentials;
  /** Sources of recipients, in the order in which a run reads them. */
  readonly sources: readonly Source[];
  readonly runMaxMs: number;
  readonly settleMs: number;
  readonly prices: Prices;
  /**
   * Returns a random text from which the codes of one recipient's own links are derived. Undefined: all share links.
   */
  readonly newLinkSecret: (() => string) | undefined;
  /** Returns a code for one recipient's page to opt out that no one can guess. */
  readonly newOptOutCode: () => string;
  /** Returns the hashes of recipients who opted out on their page, also of those that a restored log lacks. */
  readonly keptOptOuts: () => Promise<readonly string[]>;
  /** Fixed time between two sends, in ms. Undefined: the time follows the network's rate-limit headers. */
  readonly spacingMs: number | undefined;
  readonly reportEnd: ReportEnd;
  /** Returns how far the machine's clock is ahead of the log's time; negative if it is behind. */
  readonly skewMs: () => number;
}

/** Names of all projections that a run reads from its start to its end. */
export const RUN_STATES = [
  "run",
  "quota",
  "contacts",
  "account",
  "links",
  "campaigns",
  "inbox",
  "sources",
  "restores",
] as const;

/**
 * Throws ProjectionFolding while a state that a run reads is still being folded from the log. Otherwise the run would
 * end midway.
 */
export function requireRunStates({ projector }: StateContext): void {
  for (const name of RUN_STATES) projector.state(name);
}

/** Returns the state from which a run makes its decisions, with all projections at the same position of the log. */
export function outreachState(context: StateContext): OutreachState {
  const { projector } = context;
  return {
    ms: newestMoment(context),
    campaigns: projector.state("campaigns"),
    run: projector.state("run"),
    quota: projector.state("quota"),
    contacts: projector.state("contacts"),
    account: projector.state("account"),
    links: projector.state("links"),
  };
}

/** Returns the current moment, as the daily quota and the sending window count it. */
export function quotaNow(context: QuotaContext): TurnMoment {
  return { ...momentIn(context.timezone, newestMoment(context)), clockMs: context.clock() };
}

/** Returns the present time in ms, never before the newest event: a clock that was set back restores no quota. */
function newestMoment({ projector, clock }: StateContext): number {
  return Math.max(clock(), newestMs(projector.state("quota"), projector.time));
}

/**
 * Returns when the newest event was recorded, or when the log's time was corrected after that, ISO 8601. Ignores such a
 * correction while the quota is being folded. Undefined in an empty log.
 */
export function newestTime(projector: Projector): string | undefined {
  if (projector.time === undefined || !projector.isFolded("quota")) return projector.time;
  return isoTime(newestMs(projector.state("quota"), projector.time));
}

/** Returns the context for a run of this campaign. */
export function forCampaign<Context extends OutreachContext>(context: Context, campaign: string | undefined): Context {
  if (campaign === undefined) return context;
  return { ...context, rules: rulesForCampaign(context.rules, context.projector.state("campaigns"), campaign) };
}

/** Waits until the projections hold everything that is in the log now, e.g. after a version conflict. */
export async function waitForProjections({ eventLog, projector }: OutreachContext): Promise<void> {
  await projector.until((await eventLog.store.head()).position);
}

/** A signal and a pause for work that waits for the network, and that a stop must be able to interrupt. */
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
  /** Account that makes the run. If another account is linked during the run, it sends none of the run's messages. */
  readonly accountId: string | undefined;
  /** Lease that gives this instance alone the right to make a run. */
  readonly lease: HeldLease;
  readonly metadata: EventMetadata;
}

/** Most attempts at one decision of a run. Each fails if another append, as of an import, changed the stream first. */
export const RUN_ATTEMPTS_MAX = 50;
