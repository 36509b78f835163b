import type { Timer } from "../../../src/platform/clock-ids-and-timers.ts";

/** A clock that moves only when the test moves it, and timers that follow it. */
export interface FakeTime {
  readonly clock: () => number;
  readonly timer: Timer;
  /** Resolves as soon as a timer is set, with the timer's duration in ms. */
  armed(): Promise<number>;
  /** Returns the time at which the next timer fires; undefined if no timer is set. */
  nextAt(): number | undefined;
  /** Moves the clock to the next timer and fires it. */
  ring(): void;
  /** Moves the clock without firing any timer. */
  advance(ms: number): void;
  /** From now on each timer fires as soon as it is set, and the clock jumps to its time. */
  flow(): void;
}

interface Armed {
  readonly at: number;
  readonly run: () => void;
}

export function fakeTime(start = Date.parse("2026-11-20T10:00:00.000Z")): FakeTime {
  const timers = new Set<Armed>();
  let waiting: (() => void)[] = [];
  let now = start;
  let flowing = false;

  const earliest = (): Armed | undefined => [...timers].sort((a, b) => a.at - b.at)[0];

  const ring = (): void => {
    const next = earliest();
    if (next === undefined) return;
    timers.delete(next);
    now = Math.max(now, next.at);
    next.run();
  };

  return {
    clock: () => now,
    timer(run, ms) {
      const armed = { at: now + ms, run };
      timers.add(armed);
      for (const resolve of waiting.splice(0)) resolve();
      if (flowing) queueMicrotask(ring);
      return () => timers.delete(armed);
    },
    async armed() {
      for (let next = earliest(); ; next = earliest()) {
        if (next !== undefined) return next.at - now;
        await new Promise<void>((resolve) => (waiting = [...waiting, resolve]));
      }
    },
    nextAt: () => earliest()?.at,
    ring,
    advance(ms) {
      now += ms;
    },
    flow() {
      flowing = true;
      ring();
    },
  };
}
