import type { NewEvent } from "../log/event-log.ts";
import { isoTime } from "../platform/clock.ts";
import type { Channel } from "../networks/network.ts";
import type { Projector } from "../projector/projector.ts";
import { breakerIn, type CircuitBreaker } from "./circuit-breaker.ts";

/**
 * The circuit of a channel, in the log for all instances to know, and for the one that takes the channel over. Its events
 * go with the outcome that changed it, so that they cost no append.
 */
export interface PublishedCircuit {
  /** What is to be recorded with the outcome after which the circuit is this. */
  learn(breaker: CircuitBreaker): readonly NewEvent[];
  /** The append of what was learnt is over, whether the log took it or not. */
  recorded(): void;
}

export function createPublishedCircuit(channel: Channel, projector: Projector): PublishedCircuit {
  const published = (): number => breakerIn(projector.state("deliveries")[channel.name], Infinity).openUntil;
  let announced = published();
  return {
    learn({ failures, openUntil }) {
      if (openUntil === announced) return [];
      announced = openUntil;
      if (openUntil === 0) return [{ type: "CircuitClosed", data: { channel: channel.name } }];
      return [{ type: "CircuitOpened", data: { channel: channel.name, failures, until: isoTime(openUntil) } }];
    },
    recorded() {
      announced = published();
    },
  };
}
