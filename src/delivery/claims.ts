import { backlogLaneOf, type Lane } from "../../events/channel.ts";
import { sourcesOf } from "../../events/sources.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent } from "../log/event-log.ts";
import { nextRound } from "../platform/coalescing-scheduler.ts";
import type { DispatchDeps } from "./dispatch.ts";
import type { OutboxWindow, PendingDispatch } from "./outbox-window.ts";

/** Says durably which dispatches are about to be sent, in one append for all that are so while another is under way. */
export type Claim = (lane: OutboxWindow, items: readonly PendingDispatch[]) => Promise<void> | undefined;

interface ClaimsDeps extends Pick<DispatchDeps, "channel" | "lease" | "eventLog"> {
  /** Other instances may take the channel over: they must know what they would double. */
  readonly isShared: boolean;
}

/** Claims nothing where no other instance takes over, or where the network recognises each repeat. */
export function createClaims({ channel, lease, eventLog, isShared }: ClaimsDeps): Claim {
  let gathering: { readonly positions: Map<Lane, number[]>; readonly done: Promise<void> } | undefined;
  let last = Promise.resolve();

  const append = async (positions: ReadonlyMap<Lane, readonly number[]>): Promise<void> => {
    const claims = [...positions].map(([lane, claimed]): NewEvent => {
      const data = { channel: channel.name, lane, token: lease.token, sources: sourcesOf(claimed) };
      return { type: "DispatchClaimed", data };
    });
    const stream = STREAMS.delivery(channel.name);
    await lease.fenced((fence) => eventLog.append(stream, claims, SERVICE_METADATA, fence));
  };

  const gather = () => {
    const positions = new Map<Lane, number[]>();
    const done = last.then(nextRound).then(() => {
      gathering = undefined;
      return append(positions);
    });
    last = done.catch(() => {});
    return { positions, done };
  };

  // A digest has an id of its own: it would double what was sent alone, or in another one.
  const hasDigests = channel.batch === undefined && backlogLaneOf(channel.name) === "clicks";
  const isRecognised = channel.recognisesMs !== undefined && !hasDigests;
  if (!isShared || isRecognised) return () => undefined;
  return (lane, items) => {
    const unsent = items.filter(({ unrecorded }) => unrecorded === undefined);
    if (unsent.length === 0) return undefined;
    gathering ??= gather();
    const { positions, done } = gathering;
    const claimed = positions.get(lane.name) ?? [];
    positions.set(lane.name, claimed);
    for (const { event } of unsent) claimed.push(event.position);
    return done;
  };
}
