import type { Folded, Recorded, LogStore } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import { narrowedTo, type OutcomeType } from "../../events/dispatches.ts";
import { positionsOf } from "../../events/sources.ts";
import type { Deliveries } from "../../projections/deliveries.ts";
import { eventsAt, inOrder } from "../log/event-log.ts";

export const DISPATCHES_LISTED = 50;

/** Events looked at for one page of what is in doubt: of a channel that is asked for by itself there may be few among many. */
const DOUBTS_READ_MAX = 1_000;

/**
 * Where a page of a list begins: behind the dispatch of `source` whose outcome is at `position`. The newest outcome comes
 * first, and of those that were recorded together the newest source.
 */
export interface ListCursor {
  readonly position: number;
  readonly source: number;
}

/** A dispatch that did not end well, with what was to be delivered and its outcome. */
export interface ListedDispatch {
  readonly channel: ChannelName;
  /** The event whose dispatch it is. */
  readonly source: Recorded;
  /** Its outcome, narrowed to this dispatch. */
  readonly outcome: Recorded<"DispatchAbandoned" | "DispatchInDoubt">;
}

export interface ListPage {
  readonly dispatches: readonly ListedDispatch[];
  /** Undefined: there are no further ones. */
  readonly next: ListCursor | undefined;
}

interface ListQuery {
  readonly channels: readonly ChannelName[];
  /** Undefined: from the newest on. */
  readonly after: ListCursor | undefined;
}

interface Found extends ListCursor {
  readonly channel: ChannelName;
  readonly requested_at: number;
}

/** The dead letters that the projection lists. Reads nothing of the log but those of the page. */
export async function listDeadLetters(
  store: LogStore,
  deliveries: Deliveries,
  { channels, after }: ListQuery,
): Promise<ListPage> {
  const found = channels.flatMap((channel) => newestLetters(channel, deliveries, after)).sort(newestFirst);
  return readPage(store, found.slice(0, DISPATCHES_LISTED), found.length > DISPATCHES_LISTED);
}

/**
 * Those of one channel that may stand on the page or begin the next one. The last given up is at the end of the thousands
 * that are listed, which are not all sorted for fifty; those of one outcome are in no order.
 */
function newestLetters(channel: ChannelName, deliveries: Deliveries, after: ListCursor | undefined): readonly Found[] {
  const { listed } = deliveries[channel].letters;
  const newest: Found[] = [];
  for (const source of [...listed.keys()].toReversed()) {
    const place = listed.get(source);
    if (place === undefined || !isBehind({ ...place, source }, after)) continue;
    if (newest.length > DISPATCHES_LISTED && place.position !== newest.at(-1)?.position) break;
    newest.push({ channel, source, ...place });
  }
  return newest;
}

/**
 * What is in doubt, for good: nothing ends it. Reads backwards by the type of event, {@link DOUBTS_READ_MAX} at the most,
 * up to position `to`; where these were of other channels, a page has fewer dispatches and goes on all the same.
 */
export async function listInDoubt(
  store: LogStore,
  { channels, after, to }: ListQuery & { readonly to: number },
): Promise<ListPage> {
  const found: Found[] = [];
  const query = { types: ["DispatchInDoubt"], to: Math.min(to, after?.position ?? to), backwards: true };
  let read = 0;
  let position = 0;
  for await (const event of oneByOne(store.readFolded({ ...query, limit: DOUBTS_READ_MAX }))) {
    read++;
    ({ position } = event);
    found.push(...findInDoubt(event, channels).filter((one) => isBehind(one, after)));
    if (found.length > DISPATCHES_LISTED) break;
  }
  const page = await readPage(store, found.slice(0, DISPATCHES_LISTED), found.length > DISPATCHES_LISTED);
  const isCut = page.next === undefined && read === DOUBTS_READ_MAX;
  return isCut ? { ...page, next: { position, source: 0 } } : page;
}

async function* oneByOne(batches: AsyncIterable<readonly Folded[]>): AsyncGenerator<Folded, void, void> {
  for await (const batch of batches) yield* batch;
}

/** The newest source first. */
function findInDoubt({ type, data, position }: Folded, channels: readonly ChannelName[]): readonly Found[] {
  if (type !== "DispatchInDoubt" || !channels.includes(data.channel)) return [];
  const { channel, requests } = data;
  const sources = requests.flatMap((request) => positionsOf(request.sources));
  return sources.map((source) => ({ channel, source, requested_at: source, position })).sort(newestFirst);
}

function newestFirst(one: ListCursor, other: ListCursor): number {
  return other.position - one.position || other.source - one.source;
}

function isBehind(one: ListCursor, after: ListCursor | undefined): boolean {
  return after === undefined || newestFirst(after, one) < 0;
}

async function readPage(store: LogStore, found: readonly Found[], hasMore: boolean): Promise<ListPage> {
  const events = new Map<number, Recorded>();
  const positions = inOrder(found.flatMap(({ position, source }) => [position, source]));
  for await (const event of eventsAt(store, positions)) events.set(event.position, event);
  const dispatches = await Promise.all(
    found.map(async ({ channel, position, source, requested_at }) => {
      const outcome = events.get(position) as Recorded<OutcomeType> | undefined;
      const own = outcome && narrowedTo(outcome, new Set([requested_at]));
      const begun = await readOriginal(store, events.get(source));
      return own === undefined || begun === undefined ? [] : [{ channel, source: begun, outcome: own }];
    }),
  );
  const last = found.at(-1);
  return { dispatches: dispatches.flat() as ListedDispatch[], next: hasMore ? last : undefined };
}

async function readOriginal(store: LogStore, event: Recorded | undefined): Promise<Recorded | undefined> {
  if (event?.type !== "DispatchRetryRequested") return event;
  const { source } = event.data;
  for await (const original of eventsAt(store, [source])) return original;
  return undefined;
}
