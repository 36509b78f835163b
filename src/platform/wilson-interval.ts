/** The standard normal quantile of a two-sided 95 % interval. */
const Z = 1.959964;

/**
 * The Wilson score interval of a proportion, 95 %: between which bounds (0 to 1) the true rate lies, as far as `hits` of
 * `trials` can say. Undefined without trials. (E. B. Wilson, 1927, doi:10.2307/2276774.)
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
