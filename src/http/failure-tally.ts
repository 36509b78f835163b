import type { DataOf } from "../../events/catalog.ts";
import { isoTime } from "../platform/clock.ts";

/** Addresses told by themselves in a minute; more are told together, so that whoever has many cannot fill the log. */
const ADDRESSES_TOLD_MAX = 8;

/** What of a request with a wrong token was seen: it was tried, or not even looked at. */
export type Failure = "failed" | "turned_away";

type Summary = DataOf<"AuthenticationsFailed">;

/** Counts failed authentications until they are told. */
export interface FailureTally {
  note(address: string, failure: Failure, now: number): void;
  /** What was counted, at most {@link ADDRESSES_TOLD_MAX} and one more; the count starts anew. */
  take(): Summary[];
}

interface Count {
  failed: number;
  turned_away: number;
  since: number;
  until: number;
}

export function createFailureTally(): FailureTally {
  let told = new Map<string, Count>();
  let others: (Count & { readonly addresses: Set<string> }) | undefined;

  const countOf = (address: string, now: number): Count => {
    const known = told.get(address);
    if (known !== undefined) return known;
    if (told.size < ADDRESSES_TOLD_MAX) {
      const count = { failed: 0, turned_away: 0, since: now, until: now };
      told.set(address, count);
      return count;
    }
    others ??= { failed: 0, turned_away: 0, since: now, until: now, addresses: new Set() };
    if (others.addresses.size < OTHERS_COUNTED_MAX) others.addresses.add(address);
    return others;
  };

  return {
    note(address, failure, now) {
      const count = countOf(address, now);
      count[failure] += 1;
      count.until = now;
    },
    take() {
      const summaries = [...told].map(([address, count]): Summary => ({ address, addresses: 1, ...summaryOf(count) }));
      if (others !== undefined) summaries.push({ addresses: others.addresses.size, ...summaryOf(others) });
      told = new Map();
      others = undefined;
      return summaries;
    },
  };
}

/** Addresses told apart among those told together; past it the number stays, so that they cannot fill the memory. */
const OTHERS_COUNTED_MAX = 10_000;

function summaryOf({ failed, turned_away, since, until }: Count) {
  return { failed, turned_away, since: isoTime(since), until: isoTime(until) };
}
