import type { Basis, KnownRecipient, RecipientSource, RunEnd } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { isOwnRefusal, type Contacts } from "../../projections/contact-state.ts";
import { usedAt, type Quota, type QuotaMoment } from "../../projections/quota.ts";
import type { Run, RunState } from "../../projections/current-run.ts";

/**
 * Limits that a caller sets for a run: which recipients, and how many messages at most. An absent member sets no limit.
 */
export interface RunSelection {
  /** Campaign of the run; absent if it is `default`. */
  readonly campaign?: string;
  readonly limit?: number;
  readonly variant?: string;
  readonly basis?: Basis;
  readonly source?: RecipientSource;
}

export interface RunLimits {
  readonly dailyLimit: number;
  /** Share of failed messages, from 0 to 1, at which a run ends. Undefined: no share ends a run. */
  readonly stopAfterFailures: number | undefined;
}

interface DailyLimit {
  readonly dailyLimit: number;
}

interface LimitState {
  readonly quota: Quota;
  readonly run: Run;
}

/** Minimum number of messages that a run tries before the share of failures can end it. */
export const FAILURE_TRIES_MIN = 10;

/** Returns how many messages the daily quota still allows at this moment. */
export function remaining({ quota }: { readonly quota: Quota }, { dailyLimit }: DailyLimit, now: QuotaMoment): number {
  return Math.max(0, dailyLimit - usedAt(quota, now));
}

/** Returns how many messages the run may still send, by the daily quota and by its own limit. */
export function placesLeft(state: LimitState, limits: DailyLimit, now: QuotaMoment): number {
  return Math.min(remaining(state, limits, now), leftOfLimit(state.run.current));
}

/** Returns how many messages the run may still send by its own limit. */
export function leftOfLimit(run: RunState | null): number {
  return run?.limit === undefined ? Infinity : Math.max(0, run.limit - run.places);
}

/**
 * Returns why the run sends no further message; undefined if it may send one. `planned`: number of messages that a dry
 * run would have sent so far.
 */
export function reasonToEnd(state: LimitState, limits: RunLimits, now: QuotaMoment, planned = 0): RunEnd | undefined {
  const { current } = state.run;
  if (leftOfLimit(current) <= planned) return "limit_reached";
  if (remaining(state, limits, now) <= planned) return "daily_limit_reached";
  return current !== null && hasTooManyFailures(current, limits) ? "too_many_failures" : undefined;
}

/** True if the share of failed messages in this run reaches the configured one. */
function hasTooManyFailures({ sent, in_doubt, failed, withdrawn }: RunState, { stopAfterFailures }: RunLimits) {
  const failures = failed - withdrawn;
  const tries = sent + in_doubt + failures;
  return stopAfterFailures !== undefined && tries >= FAILURE_TRIES_MIN && failures / tries >= stopAfterFailures;
}

/**
 * True if the run's limits include a recipient with this variant, basis and source. An undefined `variant` is not known
 * yet, so it counts as a match.
 */
export function isSelected(
  wanted: RunSelection | null,
  found: { readonly variant: string | undefined; readonly basis: Basis; readonly source: RecipientSource | undefined },
): boolean {
  if (wanted === null) return true;
  const isVariant = wanted.variant === undefined || found.variant === undefined || wanted.variant === found.variant;
  const isBasis = wanted.basis === undefined || wanted.basis === found.basis;
  return isVariant && isBasis && (wanted.source === undefined || wanted.source === found.source);
}

/**
 * Number of recipients in a row whose messages the network refuses before our account is assumed to be restricted,
 * although the network does not say so. Further requests could harm such an account.
 */
export const REFUSED_IN_A_ROW_MAX = 5;

/**
 * Returns the recipients refused just before this one if at least {@link REFUSED_IN_A_ROW_MAX} in a row were refused
 * now: the network has then probably restricted our account. Undefined if only this recipient is concerned.
 */
export function refusedForAccount({ contacts }: { readonly contacts: Contacts }, recipient: KnownRecipient) {
  const contact = findPerson(contacts, recipient);
  if (contact !== undefined && isOwnRefusal(contacts, contact)) return undefined;
  const before = contacts.refused.filter((id) => id !== recipient.id);
  if (before.length + 1 < REFUSED_IN_A_ROW_MAX) return undefined;
  return before.map((id) => {
    const username = findPerson(contacts, { id })?.username;
    return { id, ...(username === undefined ? {} : { username }) };
  });
}
