/**
 * Measures and reports for all benchmarks. Two contenders, ours and the one compared with it, take turns, and the ratio
 * of their results in each round counts.
 */

/**
 * One line of the table of results: our figure, and that of a limit or another event store (a peer) measured in the
 * same run.
 */
export interface Row {
  readonly what: string;
  readonly unit: string;
  /** Median of this package's results, one per round. */
  readonly ours: number;
  /**
   * Median of the results with which ours are compared, one per round. They come from a limit (the fastest possible
   * way, or the same work without a feature) or from another event store.
   */
  readonly limit: number;
  /**
   * Median of the ratios of `ours` to `limit` in each round, because a change of the machine's speed affects both
   * figures of a round.
   */
  readonly ratio: number;
  /** Lowest and highest ratio of the rounds, which show how noisy the machine was. */
  readonly spread: readonly [number, number];
  /** Target of the row; undefined if the row only informs. */
  readonly bar?: Bar;
}

/** Goal that the figures in a row of the table of benchmark results must meet, such as a ratio of at most 1.2. */
export interface Bar {
  readonly text: string;
  isMet(row: Row): boolean;
}

export interface BenchOptions {
  /** True for a small and short run, which shows that every benchmark works and not how fast. */
  readonly quick: boolean;
  /**
   * Number of events in the long log, from the command line. A benchmark that works at any length uses it; default: a
   * number that the benchmark chooses.
   */
  readonly events?: number;
  /** Folder of this run of the benchmarks, which removes it at the end. */
  readonly directory: string;
  /** Folder of the logs that benchmarks only read or copy: `directory`, or one that outlasts the run. */
  readonly logs: string;
  /** Adds a sentence below the table. */
  note(text: string): void;
}

export type Bench = (options: BenchOptions) => Promise<readonly Row[]>;

/** Number of rounds of a benchmark; a median of fewer rounds says little. */
const ROUNDS = 5;
const ROUNDS_QUICK = 3;

export function roundsOf({ quick }: BenchOptions): number {
  return quick ? ROUNDS_QUICK : ROUNDS;
}

/**
 * Runs each contender once a round, after a round that does not count (compilation, caches, first pages of a file).
 * Every second round runs in reverse, so that no contender always follows the same one.
 */
export async function interleave<Name extends string, Result>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Result | Promise<Result>>>,
): Promise<Readonly<Record<Name, readonly Result[]>>> {
  const names = Object.keys(contenders) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Result[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      // Collects garbage before each contender, so that none pays for that of another.
      Bun.gc(true);
      const result = await contenders[name]();
      if (round > 0) results[name].push(result);
    }
  }
  return results;
}

/** Measures one call of `work`, which does `count` things, and returns how many of them it does in a second. */
export async function perSecond(count: number, work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return count / ((performance.now() - start) / 1000);
}

/**
 * Compares our results of all rounds of a benchmark with those of the limit, round by round, and returns the table row.
 */
export function compare(what: string, unit: string, ours: readonly number[], limit: readonly number[], bar?: Bar): Row {
  const ratios = ours.map((value, round) => value / limit[round]!);
  return {
    what,
    unit,
    ours: median(ours),
    limit: median(limit),
    ratio: median(ratios),
    spread: [Math.min(...ratios), Math.max(...ratios)],
    ...(bar === undefined ? {} : { bar }),
  };
}

export function atLeast(times: number, aim?: number): Bar {
  const text = `≥ ${times} ×${aim === undefined ? "" : `, aim ${aim}`}`;
  return { text, isMet: ({ ratio }) => ratio >= times };
}

export function atMost(times: number): Bar {
  return { text: `≤ ${times} ×`, isMet: ({ ratio }) => ratio <= times };
}

/**
 * Target: our result is at most `more` above the result with which ours is compared (`limit`), in the unit of the row.
 */
export function atMostMore(more: number, unit: string): Bar {
  return { text: `≤ ${more} ${unit} more`, isMet: ({ ours, limit }) => ours - limit <= more };
}

/**
 * Target: our result is at most `most`, in the unit of the row. The result with which ours is compared does not matter.
 */
export function atMostInAll(most: number, unit: string): Bar {
  return { text: `≤ ${most} ${unit}`, isMet: ({ ours }) => ours <= most };
}

/** Returns the median; for an even number of values it is the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
