import { expect, test } from "bun:test";
import type { Target } from "./target.ts";

/** The result of an attack. */
export interface Outcome {
  readonly tried: number;
  readonly seen: string;
  /** Descriptions of the unexpected answers and effects. */
  readonly wrong: readonly string[];
}

export interface Attack<T = Target> {
  readonly name: string;
  readonly expected: string;
  run(target: T): Promise<Outcome>;
}

/** Declares a test for each attack. The test prints the attack's result as a row of a Markdown table. */
export function testAttacks<T>(attacks: readonly Attack<T>[], target: () => T, timeoutMs = 1_200_000): void {
  for (const { name, expected, run } of attacks) {
    test(
      name,
      async () => {
        const { tried, seen, wrong } = await run(target());
        console.log(`| ${name} | ${tried} | ${expected} | ${seen} |`);
        expect(wrong).toEqual([]);
        // An attack that made no request would prove nothing.
        expect(tried).toBeGreaterThan(0);
      },
      timeoutMs,
    );
  }
}

/** Formats how often each value occurred, such as `400 × 12, 413 × 3`. */
export function tally(met: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>();
  for (const each of met) counts.set(each, (counts.get(each) ?? 0) + 1);
  const sorted = [...counts].sort(([a], [b]) => String(a).localeCompare(String(b)));
  return sorted.map(([each, count]) => `${each === 0 ? "hung up" : each} × ${count}`).join(", ");
}
