import type { Sleep } from "../../../src/platform/clock-ids-and-timers.ts";

/** Virtual time advances after this many turns of the event loop without work. */
const QUIET_TURNS = 3;

interface Timer {
  readonly at: number;
  readonly wake: () => void;
}

/**
 * A clock that stands still while there is work to do, and then jumps to the next timer. Simulated hours take
 * milliseconds, however slow the machine is.
 */
export interface VirtualTime extends Disposable {
  /** Returns the virtual time in ms since the epoch. */
  now(): number;
  readonly sleep: Sleep;
  /** Moves the clock without firing timers that are due before then. */
  jump(ms: number): void;
}

/**
 * Creates a virtual clock. It asks `isBusy` if there is work that the event loop does not show, such as an append in
 * another thread.
 */
export function createVirtualTime(start: string, isBusy: () => boolean): VirtualTime {
  let now = Date.parse(start);
  let quiet = 0;
  let stopped = false;
  let ticking = false;
  const timers = new Set<Timer>();

  const next = (): Timer | undefined => [...timers].reduce<Timer | undefined>(earlier, undefined);

  const tick = (): void => {
    ticking = !stopped && timers.size > 0;
    if (!ticking) return;
    quiet = isBusy() ? 0 : quiet + 1;
    const timer = quiet > QUIET_TURNS ? next() : undefined;
    if (timer !== undefined) {
      quiet = 0;
      now = Math.max(now, timer.at);
      timer.wake();
    }
    setImmediate(tick);
  };

  return {
    now: () => now,
    jump: (ms) => {
      now += ms;
    },
    sleep(ms, signal) {
      if (ms <= 0 || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          timers.delete(timer);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        const timer = { at: now + ms, wake };
        timers.add(timer);
        signal.addEventListener("abort", wake);
        quiet = 0;
        if (!ticking) setImmediate(tick);
        ticking = true;
      });
    },
    [Symbol.dispose]() {
      stopped = true;
    },
  };
}

function earlier(one: Timer | undefined, other: Timer): Timer {
  return one === undefined || other.at < one.at ? other : one;
}
