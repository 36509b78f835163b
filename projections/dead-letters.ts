import type { Folded } from "../events/catalog.ts";
import { positionsOf } from "../events/sources.ts";
import { msOf } from "./time.ts";

/** How a dispatch ended about which an operator decides: it was given up, or it may or may not have arrived. */
export type LetterStatus = "dead" | "in_doubt";

/**
 * Dead letters and dispatches in doubt of one channel that are listed: the newest, so that a page of them costs no reading
 * of all that ever ended so. {@link LETTERS_MAX} of each at the most; how many there are in all is counted beside. Both are
 * by the position of the event whose dispatch it is, the last one at the end.
 */
export interface DeadLetters extends Record<LetterStatus, Map<number, LetterPlace>> {
  /** Position of a retry -> position of the event it repeats, while the retry is pending. */
  taken_up: Map<number, number>;
}

/** Where the log says what else is known of it, and what a filter asks for. */
export interface LetterPlace {
  /** Position of the event that gave it up, or left it in doubt. */
  position: number;
  /** Position of what requested the dispatch: of the event itself, or of the last retry. */
  requested_at: number;
  /** Time of that event, in ms since 1970. */
  at: number;
  failure: Failure;
}

/** How the last attempt failed. */
export interface Failure {
  /** Of a dead letter: the network said no, rather than the attempts running out. */
  refused?: boolean;
  /** Whether it made a request to the network. */
  asked: boolean;
  /** HTTP status; absent: no answer came. */
  status?: number;
  /** An attempt may have arrived, the first of them at this time. */
  doubtful_since?: string;
}

/** Two hundred pages of a list, and two megabytes of a snapshot. */
export const LETTERS_MAX = 10_000;

export const noDeadLetters = (): DeadLetters => ({ dead: new Map(), in_doubt: new Map(), taken_up: new Map() });

export type EndsUndelivered = Folded<"DispatchAbandoned" | "DispatchInDoubt">;

/** Lists the dispatches that `event` ends; `isNews`: whether what was requested at a position had not ended before. */
export function listEnded(
  letters: DeadLetters,
  event: EndsUndelivered,
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

/** What a retry repeats. */
export function retriedStatus({ in_doubt }: Retried["data"]): LetterStatus {
  return in_doubt === true ? "in_doubt" : "dead";
}
