import type { Books } from "./books.ts";
import type { House } from "./house.ts";

/** Counts of the situations in the histories: without crashes and doubts they would prove little. */
export interface Tally {
  history(house: House, books: Books, commands: number): void;
  fate(what: "die" | "pause", point: string): void;
  counts(): Counts;
  line(): string;
}

export interface Counts {
  readonly histories: number;
  readonly commands: number;
  readonly crashPoints: number;
  readonly pausePoints: number;
  readonly crashes: number;
  readonly pauses: number;
  readonly attempts: number;
  readonly accepted: number;
  readonly deduplicationWindow: number;
  readonly undelivered: number;
  readonly replacedLogs: number;
  /** Replaced logs that were restored by other means than ours. */
  readonly filesPutBack: number;
  /** Restores refused because an instance was alive. */
  readonly refusedRestores: number;
  /** Instances that ended because another log had replaced theirs. */
  readonly ended: number;
  readonly forgotten: number;
  /** Runs with a requested stop. */
  readonly stopped: number;
  /** Number of times that a run waited for the window. */
  readonly waits: number;
  /** Messages given up in the last check before the request, because the window had closed. */
  readonly late: number;
  /** Runs that ended because the window was closed. */
  readonly closed: number;
  /** Runs that ended at their caller's limit. */
  readonly limited: number;
  /** Runs that ended because too many of their messages failed. */
  readonly failing: number;
}

export function createTally(): Tally {
  const points = { die: new Set<string>(), pause: new Set<string>() };
  const met = { die: 0, pause: 0 };
  const sums = {
    histories: 0,
    commands: 0,
    attempts: 0,
    accepted: 0,
    deduplicationWindow: 0,
    undelivered: 0,
    replacedLogs: 0,
    filesPutBack: 0,
    refusedRestores: 0,
    ended: 0,
    forgotten: 0,
    stopped: 0,
    waits: 0,
    late: 0,
    closed: 0,
    limited: 0,
    failing: 0,
  };
  const began = performance.now();

  const counts = (): Counts => ({
    ...sums,
    crashPoints: points.die.size,
    pausePoints: points.pause.size,
    crashes: met.die,
    pauses: met.pause,
  });

  return {
    history(house, { attempts, stopped, ends, waits, late }, commands) {
      sums.waits += waits;
      sums.late += late;
      sums.closed += ends.filter((reason) => reason === "window_closed").length;
      sums.limited += ends.filter((reason) => reason === "limit_reached").length;
      sums.failing += ends.filter((reason) => reason === "too_many_failures").length;
      sums.replacedLogs += house.replaced.length;
      sums.filesPutBack += house.replaced.filter(({ by }) => by === "files").length;
      sums.refusedRestores += house.besides.refused;
      sums.ended += house.besides.ended;
      sums.forgotten += house.forgotten.size;
      sums.stopped += stopped.size;
      const all = [...attempts.values()];
      sums.histories += 1;
      sums.commands += commands;
      sums.attempts += all.length;
      sums.accepted += house.network.accepted.length;
      sums.deduplicationWindow += all.filter(({ doubted }) => doubted).length;
      sums.undelivered += all.filter(({ reason }) => reason === "not_delivered").length;
    },
    fate(what, point) {
      points[what].add(point);
      met[what] += 1;
    },
    counts,
    line() {
      const told = Object.entries(counts()).map(([name, count]) => `${name} ${count}`);
      const perSecond = (1000 * sums.histories) / (performance.now() - began);
      return `${told.join(", ")}, violations 0 (${perSecond.toFixed(1)} histories/s)`;
    },
  };
}
