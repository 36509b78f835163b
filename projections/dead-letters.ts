import type { Folded } from "../events/event-types-and-codec.ts";
import { positionsOf } from "../events/position-ranges.ts";
import { msOf } from "./parse-log-times.ts";

/**
 * Status of a dispatch that waits for an operator's decision. `dead`: it was given up. `in_doubt`: it is not known if
 * it arrived.
 */
export type LetterStatus = "dead" | "in_doubt";

/**
 * The newest dead letters and dispatches in doubt of one channel, at most {@link LETTERS_MAX} of each, so that a page
 * of them is listed without reading the log. Keys: positions of the dispatched events. The newest outcome is last.
 */
export interface DeadLetters extends Record<LetterStatus, Map<number, LetterPlace>> {
  /** Retries that are pending: the position of each retry, and the position of the event whose dispatch it repeats. */
  taken_up: Map<number, number>;
}

/** Positions at which the log holds the details of a dispatch, with copies of the values that a filter compares. */
export interface LetterPlace {
  /** Position of the event that gave up the dispatch or left it in doubt. */
  position: number;
  /** Position of the event that requested the dispatch: the dispatched event itself, or the last retry. */
  requested_at: number;
  /** Time of the event at `position`, in ms since 1970. */
  at: number;
  failure: Failure;
}

/** Description of how the last attempt of a dispatch failed. */
export interface Failure {
  /** For a dead letter: true if the network refused it, false if the attempts ran out. */
  refused?: boolean;
  /** True if the last attempt to deliver sent a request to the network; false if it failed before that. */
  asked: boolean;
  /** HTTP status of the network's answer; absent if no answer came. */
  status?: number;
  /** Time at which the first attempt that may have arrived ended; absent if none may have arrived. */
  doubtful_since?: string;
}

/**
 * Maximum length of each list of dead letters or dispatches in doubt: two hundred pages, and two megabytes of a
 * snapshot.
 */
export const LETTERS_MAX = 10_000;

export const noDeadLetters = (): DeadLetters => ({ dead: new Map(), in_doubt: new Map(), taken_up: new Map() });

export type EndsUndelivered = Folded<"DispatchAbandoned" | "DispatchInDoubt">;

/**
 * Adds the dispatches that `event` gave up to the dead letters, or those that it left in doubt to the dispatches in
 * doubt.
 */
export function listEnded(
  letters: DeadLetters,
  event: EndsUndelivered,
  /** True if the dispatch that was requested at the position had no outcome before this event. */
  isNews: (requested_at: number) => boolean,
  max = LETTERS_MAX,
): void {
  const { position, time, data } = event;
  const listed = letters[event.type === "DispatchAbandoned" ? "dead" : "in_doubt"];
  const at = msOf(time);
  for (const request of data.requests) {
    const failure = toFailure(request);
    for (const requested_at of positionsOf(request.sources)) {
      if (!isNews(requested_at)) continue;
      listed.set(letters.taken_up.get(requested_at) ?? requested_at, { position, requested_at, at, failure });
    }
  }
  for (const oldest of listed.keys()) {
    if (listed.size <= max) break;
    listed.delete(oldest);
  }
}

function toFailure(request: EndsUndelivered["data"]["requests"][number]): Failure {
  const { mode, status } = request;
  const failure: Failure = { asked: mode !== undefined };
  if (status !== undefined) failure.status = status;
  if (!("refused" in request)) return failure;
  failure.refused = request.refused;
  if (request.doubtful_since !== undefined) failure.doubtful_since = request.doubtful_since;
  return failure;
}

export type Retried = Folded<"DispatchRetryRequested">;

export function takeUp(letters: DeadLetters, { data, position }: Retried): void {
  letters[retriedStatus(data)].delete(data.source);
  letters.taken_up.set(position, data.source);
}

/** Returns the status, dead letter or in doubt, of the dispatch that a retry repeats. */
export function retriedStatus({ in_doubt }: Retried["data"]): LetterStatus {
  return in_doubt === true ? "in_doubt" : "dead";
}
