import type { DataOf } from "../../../events/event-types-and-codec.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { SERVICE_METADATA, STREAMS, type LogContext } from "../../log/event-log.ts";
import { errorFields } from "../../platform/logger.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { FailureLimit } from "./failed-authentication-limit.ts";

/** Time in ms after a wrong token until it is recorded. The events then sum up all wrong tokens of this time. */
const RECORDED_AFTER_MS = 60_000;

/**
 * Wraps a failure limit so that wrong tokens are also recorded in the event log: a few events a minute, however many
 * tokens are tried. Disposing it records the pending ones; if the process is killed, they are lost.
 */
export function recordFailures(context: LogContext, limit: FailureLimit): FailureLimit & AsyncDisposable {
  const { clock, sleep } = context;
  const tally = createFailureTally();
  const stopping = new AbortController();
  let isWaiting = false;
  let recording: Promise<unknown> = Promise.resolve();

  const record = async (): Promise<void> => {
    isWaiting = true;
    await sleep(RECORDED_AFTER_MS, stopping.signal);
    isWaiting = false;
    await append(context, tally.take());
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
 * Records summaries of failed authentications as events. If the event log is unavailable, the operator's log still has
 * their number.
 */
async function append({ eventLog, logger }: LogContext, summaries: readonly Summary[]): Promise<void> {
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
 * Maximum number of addresses whose failed authentications get a separate event in a minute. All further addresses
 * share one event, so that a caller with many addresses cannot fill the log.
 */
const ADDRESSES_ALONE_MAX = 8;

/** Result of a request with a wrong token: `failed` for a 401, `turned_away` for a 429 after the limit was passed. */
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
  /** Failed authentications by address. Those of addresses beyond the maximum are counted under the key `undefined`. */
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
    /**
     * Returns summaries of the failures since the last call: one for each of at most {@link ADDRESSES_ALONE_MAX}
     * addresses, and one for all others.
     */
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

/**
 * Maximum number of different addresses counted in the summary that all addresses beyond {@link ADDRESSES_ALONE_MAX}
 * share. With more addresses the count stays at this number, so that they cannot fill the memory.
 */
const OTHERS_COUNTED_MAX = 10_000;
