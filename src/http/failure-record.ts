import type { DataOf } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS, type EventLog } from "../log/event-log.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { createFailureTally } from "./failure-tally.ts";
import type { RateLimit } from "./rate-limit.ts";

export interface FailureRecordDeps {
  /** Counts failed authentications. */
  readonly limit: RateLimit;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
}

/** So long after the first failure they are told, all of that time together. */
const TOLD_AFTER_MS = 60_000;

/**
 * A limit that records what it counts and turns away: a few events a minute at most, whatever is tried. Disposing it
 * tells what is left; a kill loses what was not yet told.
 */
export function recordFailures(deps: FailureRecordDeps): RateLimit & AsyncDisposable {
  const { limit, clock, sleep } = deps;
  const tally = createFailureTally();
  const stopping = new AbortController();
  let telling: Promise<void> | undefined;

  const tell = async (): Promise<void> => {
    await sleep(TOLD_AFTER_MS, stopping.signal);
    telling = undefined;
    await append(deps, tally.take());
  };
  const note = (address: string, failure: "failed" | "turned_away"): void => {
    tally.note(address, failure, clock());
    telling ??= tell();
  };

  return {
    allowance: limit.allowance,
    take(address) {
      note(address, "failed");
      return limit.take(address);
    },
    check(address) {
      const wait = limit.check(address);
      if (wait !== undefined) note(address, "turned_away");
      return wait;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await telling;
    },
  };
}

/** A log that cannot take them is no reason to fail: they are in the operator's log too, without addresses. */
async function append(
  { eventLog, logger }: FailureRecordDeps,
  summaries: readonly DataOf<"AuthenticationsFailed">[],
): Promise<void> {
  const newEvents = summaries.map((data) => ({ type: "AuthenticationsFailed", data }) as const);
  const failed = summaries.reduce((sum, summary) => sum + summary.failed, 0);
  const addresses = summaries.reduce((sum, summary) => sum + summary.addresses, 0);
  logger.warn("authentications failed", { failed, addresses });
  try {
    await eventLog.append(STREAMS.access, newEvents, SERVICE_METADATA);
  } catch (fault) {
    logger.error("failed authentications could not be recorded", errorFields(fault));
  }
}
