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
