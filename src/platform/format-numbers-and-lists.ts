/** Joins the words of a list by commas and "or": `spec or strict`; `slack, discord or teams`. */
export const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Joins the words of a list by commas and "and": `consent_at and consent_source`. */
export const ALL_OF = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** Formats a whole number with commas between thousands, such as 12,345. */
export function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

/** Formats a number with the noun that it counts, such as `1 click` or `1,200 clicks`. */
export function countInWords(number: number, one: string, several = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : several}`;
}

/** Formats a cost in US dollars, rounded up to cents or another number of decimals, such as `$13.54`. */
export function formatUsd(usd: number, decimals = 2): string {
  const unit = 10 ** decimals;
  // Subtracts a hundredth of the last decimal before rounding up, because sums of fractions are slightly off.
  const rounded = Math.max(0, Math.ceil(usd * unit - 0.01) / unit);
  return `$${rounded.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}`;
}

/** Formats a share from 0 to 1 as a percentage, with one decimal if it is less than 10 %. */
export function formatPercent(rate: number): string {
  const percent = Math.round(rate * 1_000) / 10;
  return `${percent >= 10 ? Math.round(rate * 100) : percent} %`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

/** Formats seconds in the two largest units: `2 h 5 min`, `40 s`. */
export function formatDuration(seconds: number): string {
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const unit = UNITS[at];
  if (unit === undefined) return `${seconds} s`;
  const [name, size] = unit;
  const [nextName, nextSize] = UNITS[at + 1] ?? ["s", 1];
  const rest = Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${name}${rest === 0 ? "" : ` ${rest} ${nextName}`}`;
}
