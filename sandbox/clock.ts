/** The sandbox's time, in ms since the epoch. It can be moved, so that windows and lifetimes pass quickly. */
export interface SandboxClock {
  now(): number;
  /** Moves the clock forward, or back if `ms` is negative. */
  advance(ms: number): void;
  /** Sets the factor by which the clock runs faster than real time from now on. */
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
