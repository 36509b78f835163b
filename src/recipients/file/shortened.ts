/** The first characters, whole ones only, and a mark where there were more. */
export function shortened(value: string, charsMax: number): string {
  if (value.length <= charsMax) return value;
  return `${value
    .slice(0, charsMax)
    .toWellFormed()
    .replace(/\uFFFD$/, "")}…`;
}
