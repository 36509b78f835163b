/** An operator before a browser: by mouse with and without script, or by keyboard alone. */
import { expect } from "bun:test";
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { until } from "./process.ts";

export const WAYS = ["by mouse", "by mouse, without script", "by keyboard alone"] as const;
export type Way = (typeof WAYS)[number];

/** More of them than a page has places to stop at. */
const TABS_MAX = 300;

export interface Operator {
  readonly page: Page;
  /** What their pages complained of: scripts that failed, dialogs, what the policy refused, requests without an answer. */
  readonly wrong: string[];
  /** Another tab of theirs: signed in where they are. */
  openTab(): Promise<Operator>;
  /** Follows a link to where it leads. */
  follow(name: string): Promise<void>;
  /** Presses a button, a switch too, and waits for the page that it leads to. */
  press(name: string | RegExp, role?: "button" | "switch"): Promise<void>;
  unfold(summary: string): Promise<void>;
  /** Opens what the first element that fits the selector leads to, on the page that is there. */
  open(selector: string): Promise<void>;
  fill(label: string, text: string): Promise<void>;
  chooseFile(label: string, path: string): Promise<void>;
  /** Moves a slider to its very beginning, and waits for the page that it leads to: with script alone. */
  slideToStart(slider: Locator): Promise<void>;
  /** Waits until it is on the page: which changes by itself, or, without script, when it is loaded again. */
  sees(what: string | RegExp | Locator): Promise<void>;
}

export async function operatorOf(browser: Browser, way: Way, options: BrowserContextOptions = {}): Promise<Operator> {
  const javaScriptEnabled = way !== "by mouse, without script";
  return tabOf(await browser.newContext({ ...options, javaScriptEnabled }), way, []);
}

async function tabOf(context: BrowserContext, way: Way, wrong: string[]): Promise<Operator> {
  const page = await context.newPage();
  noteWhatIsWrong(page, wrong);
  const hand = way === "by keyboard alone" ? keyboardOn(page) : mouseOn(page);
  const use = async (target: Locator, key: "Enter" | "Space"): Promise<void> => {
    await expectReachable(target);
    await hand.use(target, key);
  };
  const leading = async (act: () => Promise<void>): Promise<void> => {
    await Promise.all([page.waitForEvent("load"), act()]);
  };
  return {
    page,
    wrong,
    openTab: () => tabOf(context, way, wrong),
    follow: (name) => leading(() => use(page.getByRole("link", { name, exact: true }).first(), "Enter")),
    press: (name, role = "button") =>
      leading(() => use(page.getByRole(role, { name, exact: typeof name === "string" }).first(), "Space")),
    unfold: (summary) => use(page.locator("summary").getByText(summary, { exact: true }).first(), "Enter"),
    open: (selector) => use(page.locator(selector).first(), "Enter"),
    fill: (label, text) => hand.fill(page.getByLabel(label, { exact: true }).filter({ visible: true }).first(), text),
    async chooseFile(label, path) {
      const chooser = page.waitForEvent("filechooser");
      await use(page.getByLabel(label).first(), "Space");
      await (await chooser).setFiles(path);
    },
    slideToStart: (slider) => leading(() => hand.slideToStart(slider)),
    async sees(what) {
      const wanted = typeof what === "string" || what instanceof RegExp ? page.getByText(what) : what;
      const isThere = () => wanted.first().isVisible();
      if (way === "by mouse, without script") {
        if (await isThere()) return;
        const loadAgain = () => page.reload().then(isThere);
        return void (await until(loadAgain, (found) => found));
      }
      const loadedAt = () => page.evaluate(() => performance.timeOrigin);
      const before = await loadedAt();
      await wanted.first().waitFor({ state: "visible" });
      expect(await loadedAt()).toBe(before);
    },
  };
}

interface Hand {
  /** `key`: by which a keyboard uses it. */
  use(target: Locator, key: "Enter" | "Space"): Promise<void>;
  fill(target: Locator, text: string): Promise<void>;
  slideToStart(slider: Locator): Promise<void>;
}

function mouseOn(page: Page): Hand {
  return {
    use: (target) => target.click(),
    fill: async (target, text) => {
      await target.click();
      await page.keyboard.type(text);
    },
    slideToStart: (slider) => slider.click({ position: { x: 2, y: 4 } }),
  };
}

function keyboardOn(page: Page): Hand {
  return {
    async use(target, key) {
      await tabTo(page, target);
      await page.keyboard.press(key);
    },
    async fill(target, text) {
      await tabTo(page, target);
      await page.keyboard.type(text);
    },
    async slideToStart(slider) {
      await tabTo(page, slider);
      await page.keyboard.press("Home");
    },
  };
}

/** The least side of what is pressed, in CSS pixels (WCAG 2.2, 2.5.8); a link within a sentence may be smaller. */
const TARGET_PX_MIN = 24;

/** Throws where a thumb would miss it, or a part of it lies beside the screen. */
async function expectReachable(target: Locator): Promise<void> {
  await target.scrollIntoViewIfNeeded();
  const fault = await target.evaluate((element, least) => {
    const { left, right, width, height } = element.getBoundingClientRect();
    if (left < -0.5 || right > innerWidth + 0.5) return `is cut off: from ${left} to ${right} of ${innerWidth} pixels`;
    if (element.scrollWidth > Math.ceil(width) || element.scrollHeight > Math.ceil(height))
      return "is cut off in itself";
    const isInline = getComputedStyle(element).display === "inline";
    return !isInline && Math.min(width, height) < least ? `is ${width} by ${height} pixels` : "";
  }, TARGET_PX_MIN);
  if (fault !== "") throw new Error(`${await target.evaluate((element) => element.outerHTML)} ${fault}`);
}

/** Presses Tab until the target is focused, and looks whether one sees that it is. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  const markup = await target.evaluate((element) => element.outerHTML);
  const isFocused = () => target.evaluate((element) => element === document.activeElement);
  for (let tabs = 0; !(await isFocused()); tabs++) {
    if (tabs === TABS_MAX) throw new Error(`Tab does not lead to ${markup}`);
    await page.keyboard.press("Tab");
  }
  const hasOutline = (element: Element): boolean => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  };
  if (!(await target.evaluate(hasOutline))) throw new Error(`one does not see the focus on ${markup}`);
}

function noteWhatIsWrong(page: Page, wrong: string[]): void {
  page.on("pageerror", ({ message }) => wrong.push(message));
  page.on("console", (message) => {
    // What the policy refuses, and answers of 400 and more, are among them.
    if (message.type() === "error") wrong.push(`${message.location().url}: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // Of a page that was left: what it asked for last, and its stream.
    if (why !== "net::ERR_ABORTED") wrong.push(`${request.url()}: ${why}`);
  });
}
