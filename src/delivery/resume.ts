import type { ChannelName } from "../../events/channel.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";

/** `repeated`: somebody else ended the same suspension at the same moment. */
export type Resumed =
  { readonly kind: "resumed"; readonly since: string; readonly repeated: boolean } | { readonly kind: "not_suspended" };

/** Goes on with a suspended channel: what is pending is sent at once, and suspends it again if the network still refuses it. */
export async function resumeChannel(
  { eventLog, projector }: { readonly eventLog: EventLog; readonly projector: Projector },
  channel: ChannelName,
  metadata: EventMetadata,
): Promise<Resumed> {
  const { suspended } = projector.state("deliveries")[channel];
  if (suspended === null) return { kind: "not_suspended" };
  const { since } = suspended;
  const newEvent: NewEvent = { type: "ChannelResumed", data: { channel, why: "by_hand" } };
  // Each suspension is ended by hand once, however many ask for it at the same moment.
  const key = `resume/${channel}/${since}`;
  const { last, repeated } = await eventLog.append(STREAMS.delivery(channel), [newEvent], metadata, { key });
  await projector.until(last);
  return { kind: "resumed", since, repeated };
}
