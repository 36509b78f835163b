import { secret } from "../../../src/platform/secret.ts";
import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import type { Channel, Dispatch, DispatchResult } from "../../../src/networks/network.ts";

export const DELIVERED: DispatchResult = { outcome: "delivered", status: 200 };
export const UNAVAILABLE: DispatchResult = { outcome: "retryable", status: 503, detail: "503" };
export const IN_DOUBT: DispatchResult = { outcome: "in_doubt", detail: "the answer did not come" };
export const REFUSED: DispatchResult = { outcome: "refused", status: 400, detail: "malformed", channel: false };

export function throttled(retryAfterMs?: number): DispatchResult {
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  return { outcome: "retryable", status: 429, detail: "429", ...wait };
}

/**
 * Function by which a test decides the fake network's answer to a dispatch. `attempt` is the number of this send of the
 * dispatch, from 1.
 */
export type Answer = (dispatch: Dispatch, attempt: number) => DispatchResult | Promise<DispatchResult>;

/** Fake network in memory that gives the test's answers and records each send. */
export interface FakeChannel extends Channel {
  readonly sent: readonly Dispatch[];
  /** Highest number of sends that were in flight at once. */
  readonly inFlightMax: number;
  /** Resolves once `count` sends have begun. */
  until(count: number): Promise<void>;
}

/** Returns a list that grows, and that a test can wait for. */
export function growingList<T>() {
  const all: T[] = [];
  let waiters: { count: number; resolve: () => void }[] = [];
  return {
    all: all as readonly T[],
    add(item: T): void {
      all.push(item);
      for (const { resolve } of waiters.filter(({ count }) => count <= all.length)) resolve();
      waiters = waiters.filter(({ count }) => count > all.length);
    },
    /** Resolves once the list has `count` items. */
    until(count: number): Promise<void> {
      if (all.length >= count) return Promise.resolve();
      return new Promise((resolve) => waiters.push({ count, resolve }));
    },
  };
}

export function fakeChannel(name: ChannelName, answer: Answer = () => DELIVERED): FakeChannel {
  const { all: sent, add, until } = growingList<Dispatch>();
  const attempts = new Map<string, number>();
  let inFlight = 0;
  let inFlightMax = 0;
  return {
    name,
    network: `fake ${name}`,
    credential: secret("fake-credential"),
    sent,
    get inFlightMax() {
      return inFlightMax;
    },
    until,
    async send(dispatch) {
      inFlightMax = Math.max(inFlightMax, ++inFlight);
      const attempt = (attempts.get(dispatch.id) ?? 0) + 1;
      attempts.set(dispatch.id, attempt);
      add(dispatch);
      try {
        return await answer(dispatch, attempt);
      } finally {
        inFlight--;
      }
    },
    check: () => Promise.resolve({ ok: true, detail: "" }),
  };
}

/** Returns an answer of a fake network that is pending until the test calls `open`. */
export function gate(): { readonly answer: Promise<DispatchResult>; open(result?: DispatchResult): void } {
  const { promise, resolve } = Promise.withResolvers<DispatchResult>();
  return { answer: promise, open: (result = DELIVERED) => resolve(result) };
}
