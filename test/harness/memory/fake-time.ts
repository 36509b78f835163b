import type { Timer } from "../../../src/platform/clock.ts";

/** A clock that moves only when told, and the timers that hang on it. */
export interface FakeTime {
  readonly clock: () => number;
  readonly timer: Timer;
  /** Resolves with the wait of the next timer, in ms, as soon as one is set. */
  armed(): Promise<number>;
  /** When the next timer rings; undefined while none is set. */
  nextAt(): number | undefined;
  /** Moves on to the next timer and lets it ring. */
  ring(): void;
  /** Moves on without letting anything ring. */
  advance(ms: number): void;
  /** From now on each timer rings as soon as it is set, the clock leaping to its time. */
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
