/** Calls `run` once, `ms` from now; the answer cancels it. */
export type Timer = (run: () => void, ms: number) => () => void;

export const systemTimer: Timer = (run, ms) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};
