import type { Credentials } from "../account/tokens.ts";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { PauseReason, Recipient, RecipientSource } from "../../events/outreach.ts";
import type { EventMetadata, StateContext } from "../log/event-log.ts";
import type { HeldLease } from "../log/leases-and-roles.ts";
import type { Prices, SocialNetwork, SocialUser } from "../networks/network.ts";
import type { OutreachRules, OutreachState } from "./decide.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import type { Projector } from "../projector/projector.ts";
import { newestMs } from "../../projections/quota.ts";
import { momentIn, newestMoment } from "./quota-day.ts";
import { rulesForCampaign } from "./run-rules.ts";
import type { ReportEnd } from "./report/make-team-report.ts";
import type { Wish } from "./detect-opt-out-replies.ts";
import type { TurnMoment } from "./send-window.ts";

/**
 * A recipient that a source offers to the run, in a batch. `user`: their profile on the network, if the source has read
 * it already.
 */
export interface BatchEntry {
  readonly recipient: Recipient;
  readonly user?: SocialUser;
}

/** Maximum number of recipients in one look-up by the network. */
export const LOOKUP_BATCH = 100;

export interface Batch {
  readonly entries: readonly BatchEntry[];
  /**
   * Data of the `SourceRead` event, which the run records once all recipients of the batch are judged. A later run
   * continues the source from the cursor in this event.
   */
  readonly read?: Omit<DataOf<"SourceRead">, "run_id">;
}

/**
 * A source of recipients, such as followers or an imported list. It yields batches of at most {@link LOOKUP_BATCH}, and
 * reads the next one only when the run asks for it.
 */
export interface Source {
  /**
   * Name of the source. `again`: recipients that an earlier run could not write to yet. `last`: recipients whose
   * message from an earlier run the network refused.
   */
  readonly name: RecipientSource | "again" | "last";
  /** Yields the source's recipients in batches. Throws the network's SocialError. */
  batches(reader: Reader): AsyncIterable<Batch>;
}

/** Function that performs a read of the network, and repeats it on a failure according to the caller's policy. */
export type RetryPolicy = <T>(ask: () => Promise<T>) => Promise<T>;

/** The run that reads a source, its policy for retries, and the number of recipients that it wants next. */
export interface Reader {
  readonly run: RunContext;
  readonly retry: RetryPolicy;
  /**
   * Number of recipients worth reading next: those that the day's quota and the run's limit still allow, from 1 to
   * {@link LOOKUP_BATCH}. The network charges for each one.
   */
  wanted(): number;
}

/** A log, and the time zone in which the days of its quota begin. */
export interface QuotaContext extends StateContext {
  readonly timezone: string;
}

/** Rules for reading messages that recipients send us: which ones opt out of messages, and which ones of tracking. */
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
   * Returns a random text from which the codes of one recipient's own links are derived. Undefined if all recipients
   * get the same links.
   */
  readonly newLinkSecret: (() => string) | undefined;
  /** Returns a random code, which cannot be guessed, for the address of one recipient's page to opt out. */
  readonly newOptOutCode: () => string;
  /** Returns the hashes of recipients who opted out on their page, also of those that a restored log lacks. */
  readonly keptOptOuts: () => Promise<readonly string[]>;
  /** Fixed time between two sends, in ms. Undefined: the time follows the network's rate-limit headers. */
  readonly spacingMs: number | undefined;
  readonly reportEnd: ReportEnd;
  /** Returns how far this machine's clock is ahead of the log's, in ms; negative if it is behind. */
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
 * Throws ProjectionFolding while a projection that a run reads is still being folded from the log. A run that started
 * without it would end midway.
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

/** Returns the current moment, for decisions about the daily quota and the sending window. */
export function quotaNow(context: QuotaContext): TurnMoment {
  return { ...momentIn(context.timezone, newestMoment(context)), clockMs: context.clock() };
}

/**
 * Returns the time of the newest event, ISO 8601; if an operator corrected the log's time since, the corrected time,
 * unless the quota is still being folded. Undefined in an empty log.
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

/** Returns a run's rules by its campaign's newest definition, which an operator may have changed since the run's start. */
export function rulesNow({ rules, projector }: OutreachContext): OutreachRules {
  return rulesForCampaign(rules, projector.state("campaigns"), rules.campaign);
}

/** Waits until the projections hold everything that is in the log now, e.g. after a version conflict. */
export async function waitForProjections({ eventLog, projector }: OutreachContext): Promise<void> {
  await projector.until((await eventLog.store.head()).position);
}

/** Signal and pause for work that waits for the network, so that a stop can interrupt it. */
export interface Waiting {
  /**
   * Aborts when the work must end: at shutdown, on a request to stop the run, at its time limit, or if its lease is
   * lost. A run then ends before its next message.
   */
  readonly signal: AbortSignal;
  /** Waits until a time in ms since the epoch, or until the signal aborts. */
  readonly pause: (reason: PauseReason, until: number) => Promise<void>;
}

export interface RunContext extends OutreachContext, Waiting {
  readonly runId: string;
  /**
   * Account that makes the run. If another account is linked during the run, that account sends none of the run's
   * messages.
   */
  readonly accountId: string | undefined;
  /** Lease that lets only this instance make a run. */
  readonly lease: HeldLease;
  readonly metadata: EventMetadata;
}

/**
 * Maximum number of attempts to append one decision of a run. An attempt fails if another append, such as that of an
 * import, changed the stream since the decision was made.
 */
export const RUN_ATTEMPTS_MAX = 50;
