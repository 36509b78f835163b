import type { EventType, Folded } from "../../../../events/catalog.ts";
import type { ChannelName } from "../../../../events/channel.ts";
import { STREAMS } from "../../../journal.ts";
import type { Reading } from "./history.ts";

/** An outcome of a dispatch. */
export type Outcome = Folded<
  | "ChannelDispatched"
  | "ChannelDispatchFailed"
  | "ChannelDispatchSkipped"
  | "ChannelDispatchInDoubt"
  | "ChannelDispatchAbandoned"
>;
export type Retry = Folded<"ChannelDispatchRetryRequested">;

/** Position of what owes dispatches -> the channels it owes them to. */
export type Owed = ReadonlyMap<number, readonly ChannelName[]>;

export function isOutcome<E extends Pick<Folded, "data">>(event: E): event is E & Outcome {
  return "owed" in event.data;
}

/** Finds what took dead letters of `sources` up again, and all outcomes of these and of the sources themselves. */
export async function findDispatches(
  reading: Reading,
  sources: Owed,
  found: (event: Retry | Outcome) => void,
): Promise<void> {
  const owed = new Map<ChannelName, Set<number>>();
  const owe = (channel: ChannelName, position: number): void => {
    owed.set(channel, (owed.get(channel) ?? new Set()).add(position));
  };
  for (const [position, channels] of sources) for (const channel of channels) owe(channel, position);
  await findRetries(reading, sources, (retry) => {
    owe(retry.data.channel, retry.position);
    found(retry);
  });
  for (const [channel, positions] of owed) await findOutcomes(reading, channel, positions, found);
}

const RETRY: readonly EventType[] = ["ChannelDispatchRetryRequested"];

async function findRetries({ store, to }: Reading, sources: Owed, found: (retry: Retry) => void): Promise<void> {
  for await (const batch of store.readFolded({ types: RETRY, to })) {
    for (const event of batch) {
      if (event.type === "ChannelDispatchRetryRequested" && sources.has(event.data.source)) found(event);
    }
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
