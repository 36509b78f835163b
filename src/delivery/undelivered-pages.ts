import type { LogStore, Recorded } from "../../events/event-types-and-codec.ts";
import { narrowedTo } from "../../events/dispatches-requested-by-events.ts";
import { linkKey } from "../../projections/link-keys-and-text-links.ts";
import { eventsAt, inOrder } from "../log/event-log.ts";
import type { DeadLetter } from "./find-and-decide-dead-letters.ts";

export const DISPATCHES_LISTED = 50;

/**
 * The place of a dispatch in a list; the next page begins after it. A list has the newest outcome first. Dispatches
 * with one outcome event are in descending order of `source`.
 */
export interface ListCursor {
  readonly position: number;
  readonly source: number;
}

/** Parses a place in the list, as a page's address and the API write it. Undefined if the text is not one. */
export function parseCursor(text: string): ListCursor | undefined {
  const [, position, source] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return position === undefined ? undefined : { position: Number(position), source: Number(source) };
}

export function formatCursor({ position, source }: ListCursor): string {
  return `${position}-${source}`;
}

/**
 * Reads one page of the given dead letters, which may be in any order. `next` is undefined on the last page. Reads only
 * the page's events from the log.
 */
export async function readDispatchPage(
  store: LogStore,
  letters: readonly DeadLetter[],
  after: ListCursor | undefined,
  limit = DISPATCHES_LISTED,
) {
  const behind = letters.filter((one) => after === undefined || newestFirst(after, one) < 0).sort(newestFirst);
  const shown = behind.slice(0, limit);
  const dispatches = await readDispatches(store, shown);
  return { dispatches, next: behind.length > shown.length ? shown.at(-1) : undefined };
}

function newestFirst(one: ListCursor, other: ListCursor): number {
  return other.position - one.position || other.source - one.source;
}

export type ListedDispatch = Awaited<ReturnType<typeof readDispatches>>[number];

/**
 * Reads dispatches that ended as dead letters or in doubt, in the order of `letters`. `source` is the event whose
 * dispatch it is; `outcome` is narrowed to this dispatch.
 */
export async function readDispatches(store: LogStore, letters: readonly DeadLetter[]) {
  const positions = inOrder(letters.flatMap(({ position, source }) => [position, source]));
  const events = new Map(await Array.fromAsync(eventsAt(store, positions), (event) => [event.position, event]));
  return letters.flatMap(({ channel, position, source: at, requested_at }) => {
    const outcome = events.get(position) as Recorded<"DispatchAbandoned" | "DispatchInDoubt"> | undefined;
    const own = outcome && narrowedTo(outcome, new Set([requested_at]));
    const source = events.get(at);
    return own === undefined || source === undefined ? [] : [{ channel, source, outcome: own }];
  });
}

/** Converts a listed dispatch to the JSON of the API. */
export function toDispatchJson({ channel, source, outcome }: ListedDispatch) {
  const [request] = outcome.data.requests;
  if (request === undefined) throw new Error(`the outcome at ${outcome.position} has no request`);
  const isDead = "refused" in request;
  return {
    event_id: source.id,
    channel,
    status: isDead ? ("dead" as const) : ("in_doubt" as const),
    link: source.type === "LinkClicked" ? linkKey(source.data.domain, source.data.short_code) : null,
    attempts: request.attempt,
    refused: isDead ? request.refused : null,
    http_status: request.status ?? null,
    detail: request.detail,
    doubtful_since: (isDead ? request.doubtful_since : undefined) ?? null,
    ended_at: outcome.time,
    source: source.position,
    position: outcome.position,
  };
}
