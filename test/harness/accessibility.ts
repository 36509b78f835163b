/** Checks that a page can be used with poor sight, without a mouse, and on a phone. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { isWhole } from "./case-count.ts";

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");

declare const axe: {
  run(options: {
    readonly resultTypes: readonly string[];
    readonly runOnly?: readonly string[];
    readonly rules?: Readonly<Record<string, { readonly enabled: boolean }>>;
  }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
};

/** Rules to check. Contrast takes more than half of the time, and depends only on colors. */
const RULES = {
  all: {},
  contrast: { runOnly: ["color-contrast"] },
  "all but contrast": { rules: { "color-contrast": { enabled: false } } },
} as const;

/** Lists the accessibility rules that a page breaks, each with the first offending element. */
export async function violationsOf(
  page: Page,
  rules: keyof typeof RULES = "all",
): Promise<readonly (readonly [rule: string, element: string | undefined])[]> {
  // The page's policy allows only the page's own scripts, so the checker is injected by the browser's developer tools.
  if (!(await page.evaluate(() => "axe" in globalThis))) await inject(page);
  return page.evaluate(async (only) => {
    // Leaves passed checks out of the result, because they would list most of the page several times.
    const { violations } = await axe.run({ resultTypes: ["violations"], ...only });
    return violations.map(({ id, nodes }) => [id, nodes[0]?.html] as const);
  }, RULES[rules]);
}

/**
 * Runs the checker's script in the page. This takes about 100 ms less than `page.evaluate`, because the browser caches
 * the compiled code.
 */
async function inject(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  await session.detach();
}

/**
 * Lists the accessibility rules that a page breaks in one more of its states or widths. An ordinary test run checks
 * contrast only once for each page and color scheme, so here contrast is checked only with the fault tests.
 */
export function violationsInState(page: Page): ReturnType<typeof violationsOf> {
  return violationsOf(page, isWhole ? "all" : "all but contrast");
}

/** Color schemes, each with the accessibility rules to check in it. The schemes differ in colors only. */
const SCHEMES = [
  ["dark", "contrast"],
  ["light", "all"],
] as const;

/**
 * Returns the accessibility rules that the page breaks in the dark and in the light color scheme, each with the first
 * offending element. Leaves the page in the light scheme.
 */
export async function violationsInSchemes(page: Page) {
  const found: (readonly [scheme: string, rule: string, element: string | undefined])[] = [];
  for (const [colorScheme, rules] of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const [rule, element] of await violationsOf(page, rules)) found.push([colorScheme, rule, element]);
  }
  return found;
}

/** Returns the number of pixels by which a page is wider than its window. */
export async function overhangOf(page: Page): Promise<number> {
  // Waits for the stylesheet, because the page's text may appear before it.
  await page.waitForLoadState();
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Maximum number of pixels by which a page may scroll past the end of its content. */
const PAST_END_PX_MAX = 8;

/**
 * Scrolls a page to its end, and lists what is wrong there: the page scrolls past its content, or the menu has left its
 * place. Leaves the page at its beginning.
 */
export async function faultsAtEnd(page: Page): Promise<readonly string[]> {
  await page.waitForLoadState();
  return page.evaluate((most) => {
    const wrong: string[] = [];
    const { scrollHeight, clientHeight } = document.documentElement;
    scrollTo({ top: scrollHeight, behavior: "instant" });
    const content = document.querySelector("main")!.getBoundingClientRect().bottom + scrollY;
    const frame = document.querySelector(".frame");
    const reserved = frame === null ? 0 : parseFloat(getComputedStyle(frame).paddingBottom);
    const past = scrollHeight - Math.max(clientHeight, content + reserved);
    if (past > most) wrong.push(`scrolls ${Math.round(past)} px past its content`);
    const menu = document.querySelector(".side")?.getBoundingClientRect();
    if (menu !== undefined && (menu.top < -1 || Math.abs(menu.bottom - clientHeight) > 1))
      wrong.push(`has its menu from ${Math.round(menu.top)} to ${Math.round(menu.bottom)} of ${clientHeight} px`);
    scrollTo({ top: 0, behavior: "instant" });
    return wrong;
  }, PAST_END_PX_MAX);
}
