/** Shared by all benchmarks: contenders take turns, and what counts is how they stand to each other in each round. */

/** One line of the table: ours against a limit (or a peer) measured in the same run. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  /** Medians of the rounds. */
  readonly ours: number;
  readonly limit: number;
  /** Median of the rounds' own ratios: a drift of the machine moves both sides of one of them. */
  readonly ratio: number;
  /** Lowest and highest ratio of the rounds: how noisy the machine was. */
  readonly spread: readonly [number, number];
  /** Without one the row only informs. */
  readonly bar?: Bar;
}

/** What a row should reach. */
export interface Bar {
  readonly text: string;
  isMet(row: Pick<Row, "ours" | "limit" | "ratio">): boolean;
}

export interface BenchOptions {
  /** Small and short: shows that all works, not how fast. */
  readonly quick: boolean;
  /** Of the long log of a benchmark whose log may have any length; default: its own. */
  readonly events?: number;
  /** Of this run alone and removed after it. */
  readonly directory: string;
  /** Holds the logs that benchmarks only read, or copy: the same folder, or one that outlasts the run. */
  readonly logs: string;
  /** Adds a sentence below the table. */
  note(text: string): void;
}

export type Bench = (options: BenchOptions) => Promise<readonly Row[]>;

/** A median of fewer says little. */
const ROUNDS = 5;
const ROUNDS_QUICK = 3;

export function roundsOf({ quick }: BenchOptions): number {
  return quick ? ROUNDS_QUICK : ROUNDS;
}

/**
 * Runs each contender once a round, after a round that does not count (compilation, caches, first pages of a file).
 * Every second round goes backwards, so that nobody always follows the same one.
 */
export async function interleave<Name extends string, Result>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Result | Promise<Result>>>,
): Promise<Readonly<Record<Name, readonly Result[]>>> {
  const names = Object.keys(contenders) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Result[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      // So that nobody pays for what another left behind.
      Bun.gc(true);
      const result = await contenders[name]();
      if (round > 0) results[name].push(result);
    }
  }
  return results;
}

/** How many of `count` things are done in a second. */
export async function perSecond(count: number, work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return count / ((performance.now() - start) / 1000);
}

/** Puts two contenders' rounds beside each other. */
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

/** `more` is in the row's own unit. */
export function atMostMore(more: number, unit: string): Bar {
  return { text: `≤ ${more} ${unit} more`, isMet: ({ ours, limit }) => ours - limit <= more };
}

/** Whatever it is beside: `most` is in the row's own unit. */
export function atMostInAll(most: number, unit: string): Bar {
  return { text: `≤ ${most} ${unit}`, isMet: ({ ours }) => ours <= most };
}

/** Of an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
