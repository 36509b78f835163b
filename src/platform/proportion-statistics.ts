/** Standard normal quantile of a two-sided 95 % interval. */
const Z = 1.959964;

/**
 * Returns the 95 % Wilson score interval of a proportion: the bounds, from 0 to 1, of the true rate. Undefined without
 * trials. (Wilson, 1927, doi:10.2307/2276774)
 */
export function wilsonInterval(
  hits: number,
  trials: number,
): { readonly low: number; readonly high: number } | undefined {
  return trials === 0 ? undefined : wilsonBounds(hits, trials, Z);
}

function wilsonBounds(hits: number, trials: number, z: number): { readonly low: number; readonly high: number } {
  const rate = hits / trials;
  const spread = z * Math.sqrt((rate * (1 - rate) + (z * z) / (4 * trials)) / trials);
  const middle = rate + (z * z) / (2 * trials);
  const scale = 1 + (z * z) / trials;
  return { low: Math.max(0, (middle - spread) / scale), high: Math.min(1, (middle + spread) / scale) };
}

/** Standard normal quantile for a power of 80 %: a real difference is found in 80 of 100 experiments. */
const Z_POWER = 0.841621;

/**
 * Returns the number of trials that each of two rates needs until their difference is found (5 % level, 80 % power).
 * Undefined if the rates are equal.
 */
export function requiredSampleSize(one: number, other: number): number | undefined {
  if (one === other) return undefined;
  const variance = one * (1 - one) + other * (1 - other);
  return Math.ceil(((Z + Z_POWER) ** 2 * variance) / (one - other) ** 2);
}

/** Number of trials, and of those that were hits. */
export interface Proportion {
  readonly hits: number;
  readonly trials: number;
}

/**
 * Returns the interval of the difference of two proportions that have trials. `z` is its standard normal quantile.
 * (Newcombe, 1998, method 10, Statistics in Medicine 17, 873–890)
 */
export function differenceInterval(one: Proportion, other: Proportion, z = Z) {
  const [first, second] = [one, other].map(({ hits, trials }) => ({
    rate: hits / trials,
    ...wilsonBounds(hits, trials, z),
  }));
  const difference = first!.rate - second!.rate;
  return {
    low: difference - Math.hypot(first!.rate - first!.low, second!.high - second!.rate),
    high: difference + Math.hypot(first!.high - first!.rate, second!.rate - second!.low),
  };
}
