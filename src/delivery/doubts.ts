import { doubtfulSince } from "../../projections/deliveries.ts";
import type { Clock } from "../clock.ts";
import type { Channel } from "../networks/network.ts";
import type { Projector } from "../projector.ts";
import type { Carriage } from "./flight.ts";
import type { Item, LaneWindow } from "./lane.ts";
import { subjectOf } from "./owed.ts";

/** What may have arrived already, at a network that takes a repeat for what it is. */
export interface Doubts {
  /** What of a load may travel together: a digest has an id of its own, by which the network knows no click again. */
  apart(lane: LaneWindow, items: readonly Item[], carriage: Carriage): Load;
  /** Those that the network would not recognise any more are in doubt: they get that outcome instead of an attempt. */
  end(lane: LaneWindow, items: readonly Item[]): void;
}

interface Load {
  readonly items: readonly Item[];
  readonly carriage: Carriage;
}

interface DoubtsDeps {
  readonly channel: Channel;
  readonly projector: Projector;
  readonly clock: Clock;
}

export function createDoubts({ channel, projector, clock }: DoubtsDeps): Doubts {
  const sinceOf = (lane: LaneWindow, { event }: Item): number | undefined =>
    doubtfulSince(projector.state("deliveries")[channel.name].lanes[lane.name], event.position);

  return {
    apart(lane, items, carriage) {
      if (carriage !== "digest") return { items, carriage };
      const certain = items.filter((item) => sinceOf(lane, item) === undefined);
      if (certain.length > 1) return { items: certain, carriage };
      return { items: items.slice(0, 1), carriage: "single" };
    },
    end(lane, items) {
      const now = clock();
      for (const item of items) {
        const since = sinceOf(lane, item);
        // Another network may have been configured since, which knows nothing of the attempt.
        if (since === undefined || now - since < (channel.recognisesMs ?? 0) || item.unrecorded !== undefined) continue;
        const data = {
          event_id: subjectOf(item.event),
          owed: item.event.position,
          channel: channel.name,
          lane: lane.name,
          attempt: item.attempts,
          settled_below: 0,
          detail: "an attempt may have arrived, and it is too late for the network to recognise a repeat",
        };
        item.unrecorded = { fact: { type: "ChannelDispatchInDoubt", data }, final: true };
      }
    },
  };
}
