import type { Books } from "./log-summary.ts";
import type { House } from "./simulated-world.ts";

/**
 * Counts how often each situation occurred in the histories. Without crashes and messages in doubt, they would prove
 * little.
 */
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
  /** Logs that were replaced by copied files instead of a restore of our own backup. */
  readonly filesPutBack: number;
  /** Restores that were refused because an instance lived. */
  readonly refusedRestores: number;
  /** Instances that ended because another log had replaced theirs. */
  readonly ended: number;
  readonly forgotten: number;
  /** Number of people, over all simulated histories, whose opt-out page confirmed their opt-out. */
  readonly optedOut: number;
  /**
   * Number of messages that runs asked the network to send to other people, after an opt-out page had confirmed an
   * opt-out in the same history.
   */
  readonly askedAfterOptOut: number;
  /** Number of runs, over all simulated histories, that an operator asked to stop. */
  readonly stopped: number;
  /** Number of times that a run waited for the sending window to open. */
  readonly waits: number;
  /** Messages that were given up in the last check before the request, because the sending window had closed. */
  readonly late: number;
  /** Runs that ended because the sending window was closed. */
  readonly closed: number;
  /** Runs that ended because they had sent as many messages as their caller allowed. */
  readonly limited: number;
  /**
   * Number of recipients that callers requested by name. `notReached` counts those of them that a run ended without
   * reaching.
   */
  readonly requested: number;
  readonly notReached: number;
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
    optedOut: 0,
    askedAfterOptOut: 0,
    stopped: 0,
    waits: 0,
    late: 0,
    closed: 0,
    limited: 0,
    failing: 0,
    requested: 0,
    notReached: 0,
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
    history(house, { attempts, stopped, ends, waits, late, requests }, commands) {
      sums.requested += requests.made;
      sums.notReached += requests.notReached;
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
      const { asks, answeredOptOuts } = house.witness;
      sums.optedOut += answeredOptOuts.size;
      sums.askedAfterOptOut += asks.filter(({ at }) => at > Math.min(...answeredOptOuts.values())).length;
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
