import type { Projection } from "./projection.ts";

/** How many runs there were, dry runs too, and the newest of them by their ids, the oldest first. */
export interface Runs {
  count: number;
  /** `number`: the run's place in the order in which all runs began, from 1. `started_at`: ISO 8601. */
  started: Map<string, { readonly number: number; readonly started_at: string }>;
}

/** Runs that have a number: years of a few a day, in half a megabyte. */
export const RUNS_MAX = 5_000;

export const runs: Projection<Runs> = {
  name: "runs",
  version: 1,
  types: ["RunStarted"],
  initial: () => ({ count: 0, started: new Map() }),
  evolve(state, event) {
    if (event.type !== "RunStarted" || state.started.has(event.data.run_id)) return state;
    state.started.set(event.data.run_id, { number: ++state.count, started_at: event.time });
    const [oldest] = state.started.keys();
    if (state.started.size > RUNS_MAX && oldest !== undefined) state.started.delete(oldest);
    return state;
  },
};
