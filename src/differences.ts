/** Differences listed; more say nothing new. */
const LISTED_MAX = 20;

/** Where two states (JSON values and Maps) differ, as paths with both values. Empty: they are equal. */
export function differences(stored: unknown, rebuilt: unknown): string[] {
  const found: string[] = [];
  compare("", stored, rebuilt, found);
  return found;
}

function compare(path: string, stored: unknown, rebuilt: unknown, found: string[]): void {
  if (found.length >= LISTED_MAX || Object.is(stored, rebuilt)) return;
  const left = entriesOf(stored);
  const right = entriesOf(rebuilt);
  if (left === undefined || right === undefined) {
    found.push(`${path === "" ? "state" : path}: stored ${show(stored)}, rebuilt ${show(rebuilt)}`);
    return;
  }
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    compare(path === "" ? String(key) : `${path}.${String(key)}`, left.get(key), right.get(key), found);
  }
}

function entriesOf(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  if (value instanceof Map) return value;
  if (typeof value !== "object" || value === null) return undefined;
  return new Map<unknown, unknown>(Object.entries(value));
}

function show(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (inner instanceof Map ? [...inner] : inner)) ?? "nothing";
}
