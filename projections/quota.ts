import type { Projection } from "./projection.ts";
import { msOf } from "./parse-log-times.ts";

/**
 * Messages that count against the quota, by day and in the last 24 hours. A message counts from the intent to send it.
 * It stops counting only if the network certainly refused it, not if its outcome is unknown.
 */
export interface Quota {
  /**
   * Number of messages that each calendar day's quota is charged with (YYYY-MM-DD in the quota's time zone). No day is
   * ever dropped: ten years are about 3,650 entries, and if the clock is set back, the earlier days' counts are needed.
   */
  days: Map<string, number>;
  /** Calendar day of each intent to send a message that has no final outcome yet, by the intent's id. */
  open: Map<string, string>;
  /**
   * Time at which each recent message was last requested from the network, by the id of the intent to send it. Holds
   * the messages of about 24 hours that count against the quota.
   */
  recent: Map<string, number>;
  /** Time zone of the day of the newest intent to send a message; null if no intent has named one yet. */
  timezone: string | null;
  /**
   * Time of the first intent to send a message since QUOTA_TIMEZONE last changed, in ms since 1970; null if it never
   * changed.
   */
  changed_at: number | null;
  /**
   * Correction made after the clock had been ahead: event times up to `recorded` are too late, and `real` was the right
   * time then. Null if there was none.
   */
  corrected: { recorded: number; real: number } | null;
}

/** A moment (ms since the epoch), and its calendar day. */
export interface QuotaMoment {
  readonly ms: number;
  readonly day: string;
  readonly timezone: string;
}

/** Time for which a change of the quota's time zone has an effect, in ms. */
export const QUOTA_WINDOW_MS = 24 * 3_600_000;

export const quota: Projection<Quota> = {
  name: "quota",
  version: 5,
  types: [
    "DirectMessageAttempted",
    "DirectMessageInDoubt",
    "DirectMessageSent",
    "DirectMessageFailed",
    "DirectMessageLeft",
    "LogTimeCorrected",
  ],
  initial: () => ({
    days: new Map(),
    open: new Map(),
    recent: new Map(),
    timezone: null,
    changed_at: null,
    corrected: null,
  }),
  evolve(state, event) {
    if (event.type === "DirectMessageAttempted") {
      const { attempt_id, day, timezone, decided_at = event.time } = event.data;
      state.days.set(day, usedOn(state, day) + 1);
      state.open.set(attempt_id, day);
      const at = msOf(state.corrected === null ? event.time : decided_at);
      if (timezone !== undefined) noteTimezone(state, timezone, at);
      forgetBefore(state.recent, at - QUOTA_WINDOW_MS);
      state.recent.set(attempt_id, at);
    } else if (event.type === "DirectMessageInDoubt") {
      postpone(state, event.data.attempt_id, msOf(event.time));
    } else if (event.type === "DirectMessageSent") {
      state.open.delete(event.data.attempt_id);
      if (event.data.settled_by === "answer") postpone(state, event.data.attempt_id, msOf(event.time));
    } else if (event.type === "DirectMessageLeft") {
      state.open.delete(event.data.attempt_id);
    } else if (event.type === "DirectMessageFailed") {
      const day = state.open.get(event.data.attempt_id);
      state.open.delete(event.data.attempt_id);
      if (day !== undefined && event.data.frees_quota) {
        state.days.set(day, Math.max(0, usedOn(state, day) - 1));
        state.recent.delete(event.data.attempt_id);
      }
    } else if (event.type === "LogTimeCorrected") {
      correct(state, event.data.day, { recorded: msOf(event.time), real: msOf(event.data.at) });
    }
    return state;
  },
};

/** Returns how many messages count against the quota of `day`. */
export function usedOn(state: Quota, day: string): number {
  return state.days.get(day) ?? 0;
}

/**
 * Returns how many messages count against the quota at a moment, which must not be before the newest event. Normally
 * these are the messages of the calendar day; after a change of time zone, those of the last 24 hours.
 */
export function usedAt(state: Quota, moment: QuotaMoment): number {
  if (!isAfterChange(state, moment)) return usedOn(state, moment.day);
  let used = 0;
  for (const at of state.recent.values()) if (at > moment.ms - QUOTA_WINDOW_MS) used++;
  return used;
}

/**
 * True if the quota counts the last 24 hours instead of the calendar day: from a change of the quota's time zone until
 * 24 hours after the first message in the new zone.
 */
export function isAfterChange({ timezone, changed_at }: Quota, moment: QuotaMoment): boolean {
  // The configured time zone has changed, and no message was sent in the new zone yet.
  if (timezone !== null && timezone !== moment.timezone) return true;
  return changed_at !== null && moment.ms < changed_at + QUOTA_WINDOW_MS;
}

/**
 * Returns when the quota next has more room after a change of time zone: a message becomes older than 24 hours, or
 * calendar days count again. Undefined if calendar days count now, or if no message counts.
 */
export function releasedAt(state: Quota, moment: QuotaMoment): number | undefined {
  if (!isAfterChange(state, moment)) return undefined;
  const ends = [...state.recent.values(), ...(state.changed_at === null ? [] : [state.changed_at])]
    .map((at) => at + QUOTA_WINDOW_MS)
    .filter((end) => end > moment.ms);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

function noteTimezone(state: Quota, timezone: string, at: number): void {
  if (timezone === state.timezone) return;
  if (state.timezone !== null) state.changed_at = at;
  state.timezone = timezone;
}

/**
 * Moves the time of a message to the time at which its outcome was recorded, because the run may have sent the request
 * long after it recorded the intent.
 */
function postpone({ recent, corrected }: Quota, attemptId: string, ms: number): void {
  if (corrected !== null && ms <= corrected.recorded) return;
  if (recent.has(attemptId)) recent.set(attemptId, ms);
}

/**
 * After the clock was corrected, charges messages of days in the future to the day of the correction, since they were
 * really sent by then. Each day keeps its limit, and the future days get their full quota back.
 */
function correct(state: Quota, day: string, corrected: { readonly recorded: number; readonly real: number }): void {
  const { days, open, recent } = state;
  for (const [later, places] of days) {
    if (later <= day) continue;
    days.set(day, usedOn(state, day) + places);
    days.delete(later);
  }
  for (const [attemptId, of] of open) if (of > day) open.set(attemptId, day);
  for (const [attemptId, at] of recent) recent.set(attemptId, Math.min(at, corrected.real));
  if (state.changed_at !== null) state.changed_at = Math.min(state.changed_at, corrected.real);
  state.corrected = corrected;
}

/**
 * Returns the earliest time at which a run may decide, in ms since the epoch: the time of the newest event or, if that
 * was ahead of the clock, the real time of the operator's correction. 0 for an empty log.
 */
export function newestMs({ corrected }: Quota, time: string | undefined): number {
  const newest = time === undefined ? 0 : msOf(time);
  return corrected !== null && newest <= corrected.recorded ? corrected.real : newest;
}

/**
 * Drops messages that were last requested at `ms` or earlier. Stops at the first newer one. The map is in the order in
 * which the messages were first recorded, so an old message may stay behind a newer one for a while.
 */
function forgetBefore(recent: Map<string, number>, ms: number): void {
  for (const [attemptId, at] of recent) {
    if (at > ms) return;
    recent.delete(attemptId);
  }
}
