import type { NewEvent } from "../log/event-log.ts";
import type { DispatchResult } from "../networks/network.ts";
import { isoTime } from "../platform/clock.ts";
import { breakerIn, type CircuitBreaker, type RateLimiter } from "./rate-limiter.ts";
import { type DispatchDeps, type Learn, weightiestResult } from "./dispatch.ts";
import type { Suspension } from "./suspension.ts";

/** What answers teach of a channel. */
interface Learning {
  readonly learn: Learn;
  /** The append of what was learnt is over, whether the log took it or not. */
  recorded(learnt: readonly NewEvent[]): void;
}

interface LearningDeps extends Pick<DispatchDeps, "channel" | "projector" | "clock"> {
  readonly rateLimiter: RateLimiter;
  readonly suspension: Suspension;
}

export function createLearning(deps: LearningDeps): Learning {
  const { clock, rateLimiter, suspension } = deps;
  const circuit = createPublishedCircuit(deps);
  const learn: Learn = (results, items) => {
    const now = clock();
    const asked = results.filter(wasAsked);
    if (asked.length === 0) return [];
    const weightiest = weightiestResult(asked);
    rateLimiter.learn(weightiest, now);
    const pauseMs = Math.max(0, ...asked.map(pauseOf));
    if (pauseMs > 0) rateLimiter.pause(now + pauseMs);
    return [...circuit.learn(rateLimiter.breaker), ...suspension.learn(weightiest, items)];
  };
  return {
    learn,
    recorded(learnt) {
      circuit.recorded();
      suspension.recorded(learnt);
    },
  };
}

/** False for the rest of a batch that ended early: it says nothing of the network. */
function wasAsked(result: DispatchResult): boolean {
  return result.outcome !== "retryable" || result.unasked !== true;
}

function pauseOf(result: DispatchResult): number {
  return result.outcome === "delivered" ? (result.pauseMs ?? 0) : 0;
}

/**
 * The circuit of a channel, in the log for all instances to know, and for the one that takes the channel over. Its events
 * go with the outcome that changed it, so that they cost no append.
 */
interface PublishedCircuit {
  /** What is to be recorded with the outcome after which the circuit is this. */
  learn(breaker: CircuitBreaker): readonly NewEvent[];
  /** The append of what was learnt is over, whether the log took it or not. */
  recorded(): void;
}

function createPublishedCircuit({ channel, projector }: Pick<DispatchDeps, "channel" | "projector">): PublishedCircuit {
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
