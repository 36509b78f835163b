/** Accessibility checks: can a page be used with poor sight, without a mouse, and on a phone? */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");

declare const axe: {
  run(options: {
    readonly resultTypes: readonly string[];
    readonly runOnly?: readonly string[];
  }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
};

/**
 * Lists the accessibility rules that a page breaks, each with the first offending element. With `rules`, checks only
 * these.
 */
export async function violationsOf(
  page: Page,
  ...rules: readonly string[]
): Promise<readonly (readonly [rule: string, element: string | undefined])[]> {
  // Injected as the browser's own tools are, because the page's policy allows only its own scripts.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  return page.evaluate(
    async (only) => {
      // Omits passed checks, which would list most of the page several times.
      const { violations } = await axe.run({ resultTypes: ["violations"], ...only });
      return violations.map(({ id, nodes }) => [id, nodes[0]?.html] as const);
    },
    rules.length === 0 ? {} : { runOnly: rules },
  );
}

/** Color schemes, each with the accessibility rules to check in it, by default all. The schemes differ in colors only. */
const SCHEMES = [["dark", "color-contrast"], ["light"]] as const;

/** The rules that the page breaks in either color scheme, as {@link violationsOf} returns them. Leaves it light. */
export async function violationsInSchemes(page: Page) {
  const found: (readonly [scheme: string, rule: string, element: string | undefined])[] = [];
  for (const [colorScheme, ...rules] of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const [rule, element] of await violationsOf(page, ...rules)) found.push([colorScheme, rule, element]);
  }
  return found;
}

/** Returns the number of pixels by which a page is wider than its window. */
export async function overhangOf(page: Page): Promise<number> {
  // The text may appear before the stylesheet.
  await page.waitForLoadState();
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
