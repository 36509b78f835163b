/** Whether those who cannot see a page well, or use it by mouse, or have a phone, can use it. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");

declare const axe: {
  run(options: {
    readonly resultTypes: readonly string[];
    readonly runOnly?: readonly string[];
  }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
};

/** The rules that the page breaks, each with the first element that does; `rules`: these alone. */
export async function violationsOf(
  page: Page,
  ...rules: readonly string[]
): Promise<readonly (readonly [rule: string, element: string | undefined])[]> {
  // Run as the browser's own tools are: the page's policy lets nothing but its own scripts in.
  await page.evaluate(AXE);
  return page.evaluate(
    async (only) => {
      // What is in order is not asked for: it would be most of a page, several times over.
      const { violations } = await axe.run({ resultTypes: ["violations"], ...only });
      return violations.map(({ id, nodes }) => [id, nodes[0]?.html] as const);
    },
    rules.length === 0 ? {} : { runOnly: rules },
  );
}

/** By how many pixels a page is wider than its window. */
export async function overhangOf(page: Page): Promise<number> {
  // Its words may be there before its stylesheet.
  await page.waitForLoadState();
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
