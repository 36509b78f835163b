import type { EventType, Recorded } from "../../events/event-types-and-codec.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { isOutcome, narrowedTo } from "../../events/dispatches-requested-by-events.ts";
import { findDispatches, isDecision, readRequestedChannels, sourcesOfEvent } from "../history/dispatch-outcomes.ts";
import { findEvent, type Reading } from "../history/find-event.ts";
import { eventsAt, inOrder } from "../log/event-log.ts";

/** History of a dispatch: its source, outcomes and operators' decisions. */
export interface DispatchHistory {
  /** Event that requested the dispatch; if the given event requests none, that event. */
  readonly source: Recorded;
  /** Outcomes and operators' decisions by channel, for each selected channel of the dispatch. */
  readonly channels: ReadonlyMap<ChannelName, readonly Recorded[]>;
  /** Positions that requested the dispatch: of its source event, and of each retry. */
  readonly requested: ReadonlySet<number>;
}

/**
 * Finds the dispatch that an event requests or is about; undefined if there is no such event. An outcome event of
 * several dispatches gives at most `limit` of them. `wanted`: the channels; undefined for all.
 */
export async function findDispatchHistories(
  reading: Reading,
  id: string,
  { wanted, limit }: { readonly wanted: readonly ChannelName[] | undefined; readonly limit: number },
): Promise<readonly DispatchHistory[] | undefined> {
  const asked = await findEvent(reading, id);
  if (asked === undefined) return undefined;
  const requestedBy = await readRequestedChannels(reading);
  const sources = (await sourcesOfEvent(reading, requestedBy, asked)).slice(0, limit);
  if (sources.length === 0) return [{ source: asked, channels: new Map(), requested: new Set() }];
  const channelsOfSource = (source: Recorded) => requestedBy(source).filter((name) => wanted?.includes(name) ?? true);
  const positions: number[] = [];
  const dispatches = await findDispatches(
    reading,
    new Map(sources.map((source) => [source.position, channelsOfSource(source)])),
    ({ position }) => void positions.push(position),
  );
  const events = await Array.fromAsync(eventsAt(reading.store, inOrder(positions)));
  return sources.map((source) => {
    const requested = new Set([...dispatches].flatMap(([position, of]) => (of === source.position ? [position] : [])));
    const own = events.flatMap((event) => ofDispatch(event, source.position, requested));
    const names = channelsOfSource(source);
    // Keeps the events that are about this channel.
    const eventsOn = (name: ChannelName) => own.filter(({ data }) => "channel" in data && data.channel === name);
    return { source, requested, channels: new Map(names.map((name) => [name, eventsOn(name)])) };
  });
}

function ofDispatch(event: Recorded, source: number, requested: ReadonlySet<number>): Recorded[] {
  if (isDecision(event)) return event.data.source === source ? [event] : [];
  const own = isOutcome(event) ? narrowedTo(event, requested) : undefined;
  return own === undefined ? [] : [own];
}

export type WaitingDispatch = {
  readonly status: "waiting";
  readonly attempts: number;
  readonly retry_at: string | undefined;
};

export type DispatchStatus =
  WaitingDispatch | { readonly status: "delivered" | "skipped" | "in_doubt" | "dead" | "discarded" | "left" | "lost" };

const UNTRIED: DispatchStatus = { status: "waiting", attempts: 0, retry_at: undefined };

/**
 * Returns the status of one dispatch to one channel (pure). `events`: its outcomes, narrowed to this dispatch, and the
 * decisions on it, in the order of the log. If two final outcomes are recorded, the first counts.
 */
export function toDispatchStatus(events: readonly Recorded[]): DispatchStatus {
  let retry: number | undefined;
  return events.reduce((current, event) => {
    if (event.type === "DispatchRetryRequested") retry = event.position;
    // The network may report late that it lost an earlier message, which a retry has replaced.
    return event.type === "DispatchLost" && event.data.retry !== retry ? current : next(current, event);
  }, UNTRIED);
}

function next(current: DispatchStatus, { type, data }: Recorded): DispatchStatus {
  if (type === "DispatchRetryRequested") return UNTRIED;
  if (type === "DispatchDiscarded") return { status: "discarded" };
  if (type === "DispatchSettled") return { status: data.as === "arrived" ? "delivered" : "left" };
  // The network may report that it lost a message before the dispatcher has recorded the message's outcome. A dispatch
  // in doubt stays so, whichever event came first: it is listed until an operator decides.
  if (type === "DispatchLost") return current.status === "in_doubt" ? current : { status: "lost" };
  if (type === "DispatchInDoubt" && current.status === "lost") return { status: "in_doubt" };
  if (current.status !== "waiting") return current;
  if (type === "DispatchFailed") {
    const [request] = data.requests;
    return { status: "waiting", attempts: request?.attempt ?? 0, retry_at: request?.retry_at };
  }
  const status = FINAL[type];
  return status === undefined ? current : { status };
}

const FINAL: Partial<Record<EventType, Exclude<DispatchStatus["status"], "waiting">>> = {
  DispatchSucceeded: "delivered",
  DispatchSkipped: "skipped",
  DispatchInDoubt: "in_doubt",
  DispatchAbandoned: "dead",
};
