import { expect, test } from "bun:test";
import type { Target } from "./target.ts";

/** What an attack did, and what it saw. */
export interface Outcome {
  readonly tried: number;
  readonly seen: string;
  /** Whatever was not as it should be. */
  readonly wrong: readonly string[];
}

export interface Attack<T = Target> {
  readonly name: string;
  readonly expected: string;
  run(target: T): Promise<Outcome>;
}

/** A test for each attack; it prints a row of a table. */
export function testAttacks<T>(attacks: readonly Attack<T>[], target: () => T, timeoutMs = 1_200_000): void {
  for (const { name, expected, run } of attacks) {
    test(
      name,
      async () => {
        const { tried, seen, wrong } = await run(target());
        console.log(`| ${name} | ${tried} | ${expected} | ${seen} |`);
        expect(wrong).toEqual([]);
        // An attack that tried nothing has shown nothing.
        expect(tried).toBeGreaterThan(0);
      },
      timeoutMs,
    );
  }
}

/** How often each was met, such as `400 × 12, 413 × 3`. */
export function tally(met: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>();
  for (const each of met) counts.set(each, (counts.get(each) ?? 0) + 1);
  const sorted = [...counts].sort(([a], [b]) => String(a).localeCompare(String(b)));
  return sorted.map(([each, count]) => `${each === 0 ? "hung up" : each} × ${count}`).join(", ");
}
