import type { EventType, Folded, Recorded } from "../../../../events/catalog.ts";
import type { ChannelName } from "../../../../events/channel.ts";
import { requestedChannels } from "../../../../projections/deliveries.ts";
import { STREAMS } from "../../../log/event-log.ts";
import { eventsAt, type Reading } from "./history.ts";

/** An outcome of a dispatch. */
export type Outcome = Folded<
  "DispatchSucceeded" | "DispatchFailed" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned"
>;

/** What an operator decided of a dead letter. */
export type Decision = Folded<"DispatchRetryRequested" | "DispatchDiscarded">;

/** Position of what owes dispatches -> the channels it owes them to. */
export type RequestedDispatches = ReadonlyMap<number, readonly ChannelName[]>;

export function isOutcome<E extends Pick<Folded, "data">>(event: E): event is E & Outcome {
  return "owed" in event.data;
}

/** Both name the event whose dispatch it is by its position. */
export function isDecision<E extends Pick<Folded, "type">>(event: E): event is E & Decision {
  return event.type === "DispatchRetryRequested" || event.type === "DispatchDiscarded";
}

/** The event whose dispatch is told of, beyond any retry; undefined where no dispatch is. */
export async function sourceOf(reading: Reading, event: Recorded): Promise<Recorded | undefined> {
  if (isDecision(event)) return eventAt(reading, event.data.source);
  if (isOutcome(event)) return sourceOf(reading, await eventAt(reading, event.data.owed));
  return requestedChannels(event).length > 0 ? event : undefined;
}

async function eventAt(reading: Reading, position: number): Promise<Recorded> {
  for await (const event of eventsAt(reading, [position])) return event;
  throw new Error(`the log has no event at position ${position}`);
}

/** Finds what was decided of dead letters of `sources`, and all outcomes of the sources and of those taken up again. */
export async function findDispatches(
  reading: Reading,
  sources: RequestedDispatches,
  found: (event: Decision | Outcome) => void,
): Promise<void> {
  const owed = new Map<ChannelName, Set<number>>();
  const owe = (channel: ChannelName, position: number): void => {
    owed.set(channel, (owed.get(channel) ?? new Set()).add(position));
  };
  for (const [position, channels] of sources) for (const channel of channels) owe(channel, position);
  await findDecisions(reading, sources, (decision) => {
    if (decision.type === "DispatchRetryRequested") owe(decision.data.channel, decision.position);
    found(decision);
  });
  for (const [channel, positions] of owed) await findOutcomes(reading, channel, positions, found);
}

const DECISIONS: readonly EventType[] = ["DispatchRetryRequested", "DispatchDiscarded"];

async function findDecisions(
  { store, to }: Reading,
  sources: RequestedDispatches,
  found: (decision: Decision) => void,
): Promise<void> {
  for await (const batch of store.readFolded({ types: DECISIONS, to })) {
    for (const event of batch) if (isDecision(event) && sources.has(event.data.source)) found(event);
  }
}

/**
 * Reads the channel's stream from the first that is owed to the end, also when all are settled: an outcome told twice
 * may be a dispatch sent twice.
 */
async function findOutcomes(
  { store, to, onProgress }: Reading,
  channel: ChannelName,
  owed: ReadonlySet<number>,
  found: (outcome: Outcome) => void,
): Promise<void> {
  let from = to;
  for (const position of owed) from = Math.min(from, position);
  for await (const batch of store.readFolded({ stream: STREAMS.delivery(channel), from, to })) {
    onProgress(batch.at(-1)?.position ?? from);
    for (const event of batch) if (isOutcome(event) && owed.has(event.data.owed)) found(event);
  }
}
