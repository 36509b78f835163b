/** The standard normal quantile of a two-sided 95 % interval. */
const Z = 1.959964;

/**
 * The 95 % Wilson score interval of a proportion: the bounds, from 0 to 1, of the true rate. Undefined without trials.
 * (Wilson, 1927, doi:10.2307/2276774)
 */
export function wilsonInterval(
  hits: number,
  trials: number,
): { readonly low: number; readonly high: number } | undefined {
  if (trials === 0) return undefined;
  const rate = hits / trials;
  const spread = Z * Math.sqrt((rate * (1 - rate) + (Z * Z) / (4 * trials)) / trials);
  const middle = rate + (Z * Z) / (2 * trials);
  const scale = 1 + (Z * Z) / trials;
  return { low: Math.max(0, (middle - spread) / scale), high: Math.min(1, (middle + spread) / scale) };
}

/** The standard normal quantile for a power of 80 %: a real difference is found in 80 of 100 trials. */
const Z_POWER = 0.841621;

/**
 * Trials of each of two rates after which their difference is found (5 % level, 80 % power). Undefined if the rates are
 * equal.
 */
export function requiredSampleSize(one: number, other: number): number | undefined {
  if (one === other) return undefined;
  const variance = one * (1 - one) + other * (1 - other);
  return Math.ceil(((Z + Z_POWER) ** 2 * variance) / (one - other) ** 2);
}
