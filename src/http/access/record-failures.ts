import type { DataOf } from "../../../events/catalog.ts";
import { isoTime } from "../../platform/clock.ts";
import { SERVICE_METADATA, STREAMS, type PartDeps } from "../../log/event-log.ts";
import { errorFields } from "../../platform/logger.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { FailureLimit } from "./failure-limit.ts";

export interface FailureRecordDeps extends Pick<PartDeps, "eventLog" | "clock" | "logger" | "sleep"> {
  readonly limit: FailureLimit;
}

/** How long failures are collected after the first one, to be recorded together. */
const RECORDED_AFTER_MS = 60_000;

/**
 * Adds a record of wrong tokens to a limit: a few events a minute at most, however many tokens are tried. Disposing it
 * records the pending ones; a kill loses them.
 */
export function recordFailures(deps: FailureRecordDeps): FailureLimit & AsyncDisposable {
  const { limit, clock, sleep } = deps;
  const tally = createFailureTally();
  const stopping = new AbortController();
  let isWaiting = false;
  let recording: Promise<unknown> = Promise.resolve();

  const record = async (): Promise<void> => {
    isWaiting = true;
    await sleep(RECORDED_AFTER_MS, stopping.signal);
    isWaiting = false;
    await append(deps, tally.take());
  };
  return {
    async fail(address) {
      const wait = await limit.fail(address);
      tally.note(address, wait === undefined ? "failed" : "turned_away", clock());
      if (!isWaiting) recording = Promise.all([recording, record()]);
      return wait;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await recording;
    },
  };
}

/**
 * Records failures as events. If the event log is unavailable, they are at least in the operator's log, without
 * addresses.
 */
async function append({ eventLog, logger }: FailureRecordDeps, summaries: readonly Summary[]): Promise<void> {
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

/**
 * Addresses that get an event each per minute. The rest share one, so that a caller with many addresses cannot fill the
 * log.
 */
const ADDRESSES_ALONE_MAX = 8;

/** The result of a request with a wrong token: 401, or 429 once the limit was passed. */
type Failure = "failed" | "turned_away";

type Summary = DataOf<"AuthenticationsFailed">;

interface Count {
  readonly addresses: Set<string>;
  failed: number;
  turned_away: number;
  readonly since: number;
  until: number;
}

function createFailureTally() {
  /** Counts by address; the key undefined collects all other addresses. */
  let counts = new Map<string | undefined, Count>();

  return {
    note(address: string, failure: Failure, now: number): void {
      const own = counts.has(address) || counts.size < ADDRESSES_ALONE_MAX ? address : undefined;
      const count = counts.get(own) ?? { addresses: new Set(), failed: 0, turned_away: 0, since: now, until: now };
      counts.set(own, count);
      if (count.addresses.size < OTHERS_COUNTED_MAX) count.addresses.add(address);
      count[failure] += 1;
      count.until = now;
    },
    /** Returns the counts and resets them: at most {@link ADDRESSES_ALONE_MAX} addresses, and one summary of the rest. */
    take(): Summary[] {
      const taken = counts;
      counts = new Map();
      return [...taken].map(([address, { addresses, since, until, ...failures }]) => ({
        ...omitUndefined({ address }),
        addresses: addresses.size,
        ...failures,
        since: isoTime(since),
        until: isoTime(until),
      }));
    },
  };
}

/** Addresses that the shared event distinguishes. Beyond this the number stays, so that they cannot fill the memory. */
const OTHERS_COUNTED_MAX = 10_000;
