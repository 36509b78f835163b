/** The sandbox's own time, in ms since the epoch: it can be moved, so that windows and lifetimes pass quickly. */
export interface SandboxClock {
  now(): number;
  /** Moves the clock forward (or back). */
  advance(ms: number): void;
  /** How much faster than real time it runs from now on. */
  setSpeed(speed: number): void;
}

export function createClock(real: () => number): SandboxClock {
  let base = real();
  let shown = base;
  let speed = 1;
  const now = (): number => shown + (real() - base) * speed;
  return {
    now,
    advance(ms) {
      shown = now() + ms;
      base = real();
    },
    setSpeed(factor) {
      shown = now();
      base = real();
      speed = factor;
    },
  };
}
