import type { Recorded } from "../../events/catalog.ts";
import type { Clock } from "../clock.ts";
import { OWN_CAUSE, STREAMS, type Journal } from "../journal.ts";
import { faultFields, type Logger } from "../log.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import type { Projector } from "../projector.ts";
import { decideOutcome, type Outcome } from "./attempt.ts";
import type { Item, LaneWindow } from "./lane.ts";
import { dispatchOf } from "./owed.ts";

/** One attempt's total deadline; Meta recommends 1.5 s, chat services answer within a few seconds. */
const ATTEMPT_TIMEOUT_MS = 5_000;

/** A test found this old after a restart: whoever waited for it has gone. */
const TEST_EXPIRES_MS = 60_000;

export interface FlightDeps {
  readonly channel: Channel;
  readonly journal: Journal;
  readonly projector: Projector;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * One attempt: asks the network, then records the outcome; the item leaves its lane once that is durable.
 * Rejects when the log did not take the outcome. The item keeps it, so the next try only records: sending again would
 * double what has arrived.
 */
export async function fly(
  deps: FlightDeps,
  lane: LaneWindow,
  item: Item,
  learn: (result: DispatchResult) => void,
): Promise<void> {
  const { fact, final } = (item.unrecorded ??= await attempt(deps, lane, item, learn));
  const appended = await deps.journal.append(STREAMS.delivery(deps.channel.name), [fact], OWN_CAUSE);
  delete item.unrecorded;
  item.attempts++;
  if (final) lane.remove(item);
  if (fact.type === "ChannelDispatchFailed") item.notBefore = Date.parse(fact.data.retry_at);
  await deps.projector.until(appended.last);
}

async function attempt(
  deps: FlightDeps,
  lane: LaneWindow,
  item: Item,
  learn: (result: DispatchResult) => void,
): Promise<Outcome> {
  const startedAt = deps.clock();
  if (isExpired(item.event, startedAt)) return expired(deps, lane, item);
  const dispatch = await dispatchOf(deps.journal.store, item.event);
  const result = await deps.channel
    .send(dispatch, { timeoutMs: ATTEMPT_TIMEOUT_MS, now: startedAt })
    .catch((fault: unknown) => faulty(deps, fault));
  learn(result);
  const now = deps.clock();
  return decideOutcome(
    {
      channel: deps.channel.name,
      lane: lane.name,
      event: item.event,
      number: item.attempts + 1,
      settledBelow: lane.settledBelow(item),
      latencyMs: now - startedAt,
      now,
      random: deps.random(),
    },
    result,
  );
}

/** A defect of the channel's code: nobody knows how far it came, and a repeat would meet it again. */
function faulty({ channel, log }: FlightDeps, fault: unknown): DispatchResult {
  log.error("a channel failed by a fault of its own", { channel: channel.name, ...faultFields(fault) });
  return { outcome: "in_doubt", detail: "a fault inside reachlog; its log tells more" };
}

function isExpired(event: Recorded, now: number): boolean {
  return event.type === "ChannelTestRequested" && now - Date.parse(event.time) > TEST_EXPIRES_MS;
}

function expired({ channel }: FlightDeps, lane: LaneWindow, item: Item): Outcome {
  const data = {
    event_id: item.event.id,
    owed: item.event.position,
    channel: channel.name,
    lane: lane.name,
    attempt: item.attempts + 1,
    settled_below: lane.settledBelow(item),
    reason: "expired",
  } as const;
  return { fact: { type: "ChannelDispatchSkipped", data }, final: true };
}
