import type { DataOf } from "../../../events/catalog.ts";
import { isoTime } from "../../platform/clock.ts";
import { SERVICE_METADATA, STREAMS, type PartDeps } from "../../log/event-log.ts";
import { errorFields } from "../../platform/logger.ts";
import type { FailureLimit } from "./failure-limit.ts";

export interface FailureRecordDeps extends Pick<PartDeps, "eventLog" | "clock" | "logger" | "sleep"> {
  readonly limit: FailureLimit;
}

/** So long after the first failure they are recorded, all of that time together. */
const RECORDED_AFTER_MS = 60_000;

/**
 * A limit that records the wrong tokens it counts: a few events a minute at most, whatever is tried. Disposing it records
 * those that are pending; a kill loses them.
 */
export function recordFailures(deps: FailureRecordDeps): FailureLimit & AsyncDisposable {
  const { limit, clock, sleep } = deps;
  const tally = createFailureTally();
  const stopping = new AbortController();
  let recording: Promise<void> | undefined;

  const record = async (): Promise<void> => {
    await sleep(RECORDED_AFTER_MS, stopping.signal);
    recording = undefined;
    await append(deps, tally.take());
  };
  const note = (address: string, failure: Failure): void => {
    tally.note(address, failure, clock());
    recording ??= record();
  };

  return {
    async fail(address) {
      const wait = await limit.fail(address);
      note(address, wait === undefined ? "failed" : "turned_away");
      return wait;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await recording;
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

/** Addresses with an event of their own in a minute; more share one, so that a caller with many cannot fill the log. */
const ADDRESSES_ALONE_MAX = 8;

/** What a request with a wrong token got: 401, or 429 once the limit was passed. */
type Failure = "failed" | "turned_away";

type Summary = DataOf<"AuthenticationsFailed">;

interface Count {
  failed: number;
  turned_away: number;
  since: number;
  until: number;
}

/** Counts failed authentications until they are recorded. */
function createFailureTally() {
  let alone = new Map<string, Count>();
  let others: (Count & { readonly addresses: Set<string> }) | undefined;

  const findCount = (address: string, now: number): Count => {
    const known = alone.get(address);
    if (known !== undefined) return known;
    if (alone.size < ADDRESSES_ALONE_MAX) {
      const count = { failed: 0, turned_away: 0, since: now, until: now };
      alone.set(address, count);
      return count;
    }
    others ??= { failed: 0, turned_away: 0, since: now, until: now, addresses: new Set() };
    if (others.addresses.size < OTHERS_COUNTED_MAX) others.addresses.add(address);
    return others;
  };

  return {
    note(address: string, failure: Failure, now: number): void {
      const count = findCount(address, now);
      count[failure] += 1;
      count.until = now;
    },
    /** Returns the counts and resets them: at most {@link ADDRESSES_ALONE_MAX} addresses, and one summary of the rest. */
    take(): Summary[] {
      const summaries = [...alone].map(([address, count]): Summary => ({ address, addresses: 1, ...toSummary(count) }));
      if (others !== undefined) summaries.push({ addresses: others.addresses.size, ...toSummary(others) });
      alone = new Map();
      others = undefined;
      return summaries;
    },
  };
}

/** Addresses distinguished among those that share an event; past it the number stays, so that they cannot fill the memory. */
const OTHERS_COUNTED_MAX = 10_000;

function toSummary({ failed, turned_away, since, until }: Count) {
  return { failed, turned_away, since: isoTime(since), until: isoTime(until) };
}
