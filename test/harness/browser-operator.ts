/** An operator at a browser, who uses the mouse, with or without script, or only the keyboard. */
import { expect } from "bun:test";
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { TOKEN, until } from "./process.ts";

export const WAYS = ["by mouse", "by mouse, without script", "by keyboard alone"] as const;
export type Way = (typeof WAYS)[number];

/** Maximum number of Tab presses until a target has focus: more than any page has tab stops. */
const TABS_MAX = 300;

export interface Operator {
  readonly page: Page;
  /**
   * Errors of all pages that the operator opened: scripts that failed, dialogs, violations of the content policy, and
   * requests without a response.
   */
  readonly wrong: string[];
  /** Opens another tab of the same browser, which is signed in too. */
  openTab(): Promise<Operator>;
  /** Follows the link with this name, and waits for its page. */
  follow(name: string | RegExp): Promise<void>;
  /** Follows a link that changes the page in place or, without script, opens it again. */
  followInPlace(name: string): Promise<void>;
  /** Presses the button that opens a menu or another part over the page. */
  openOver(name: RegExp): Promise<void>;
  /** Presses a button or switch, mostly by its name, and waits for the resulting page. */
  press(target: string | RegExp | Locator, role?: "button" | "switch"): Promise<void>;
  /**
   * Opens a part of the page that is closed at first. Without script, opens the page that asks for a confirmation
   * instead.
   */
  unfold(summary: string): Promise<void>;
  /** Opens the address of the first link on the current page that matches the selector. */
  open(selector: string): Promise<void>;
  fill(label: string, text: string): Promise<void>;
  chooseFile(label: string, path: string): Promise<void>;
  /**
   * Imports a file from the page of people. Calls `look` while the import's preview is shown, before it is confirmed:
   * in a dialog or, without script, on a page.
   */
  importFile(path: string, look?: () => Promise<void>): Promise<void>;
  /** Moves a slider to its start and waits for the resulting page. Needs script. */
  slideToStart(slider: Locator): Promise<void>;
  /** Waits until the text or element appears. The page updates by itself or, without script, is reloaded until then. */
  sees(what: string | RegExp | Locator): Promise<void>;
}

/** Maximum time in ms until a text appears. */
const SEEN_MS_MAX = 300_000;

export async function operatorOf(browser: Browser, way: Way, options: BrowserContextOptions = {}): Promise<Operator> {
  const javaScriptEnabled = way !== "by mouse, without script";
  return tabOf(await browser.newContext({ ...options, javaScriptEnabled }), way, []);
}

/** Signs the page's browser in without the form, for tests of other pages. */
export async function signInByRequest(page: Page, { url }: { readonly url: string }, token = TOKEN): Promise<void> {
  const body = new URLSearchParams({ token });
  const signedIn = await fetch(new URL("/session", url), { method: "POST", body, redirect: "manual" });
  const [, name = "", value = ""] = /^([^=]+)=([^;]+)/.exec(signedIn.headers.get("set-cookie") ?? "") ?? [];
  await page.context().addCookies([{ name, value, url, httpOnly: true, sameSite: "Strict" }]);
}

/** Counts the clicks on links and buttons. The page must not be open yet. Clicks into fields are not counted. */
export async function countClicks(page: Page): Promise<() => number> {
  let clicks = 0;
  await page.exposeFunction("countClick", () => void clicks++);
  await page.addInitScript(
    `addEventListener("click", ({ target }) => target.closest("input, select, textarea") ?? countClick(), true)`,
  );
  return () => clicks;
}

async function tabOf(context: BrowserContext, way: Way, wrong: string[]): Promise<Operator> {
  const javaScriptEnabled = way !== "by mouse, without script";
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
  const find = (target: string | RegExp | Locator, role: "button" | "link" | "switch"): Locator => {
    const isName = typeof target === "string" || target instanceof RegExp;
    return isName ? page.getByRole(role, { name: target, exact: typeof target === "string" }) : target;
  };
  return {
    page,
    wrong,
    openTab: () => tabOf(context, way, wrong),
    follow: (name) => leading(() => use(find(name, "link").first(), "Enter")),
    async followInPlace(name) {
      const link = find(name, "link").first();
      await (javaScriptEnabled ? use(link, "Enter") : leading(() => use(link, "Enter")));
    },
    openOver: (name) => use(page.getByRole("button", { name }).first(), "Enter"),
    press: (target, role = "button") => leading(() => use(find(target, role).first(), "Space")),
    async unfold(summary) {
      const target = page
        .locator("summary, [data-dialog], button[name=confirm]")
        .getByText(summary, { exact: true })
        .first();
      const isLink = (await target.getAttribute("href"))?.startsWith("?") === true;
      const leads = isLink || (await target.getAttribute("name")) === "confirm";
      await (leads && !javaScriptEnabled ? leading(() => use(target, "Enter")) : use(target, "Enter"));
    },
    open: (selector) => use(page.locator(selector).first(), "Enter"),
    fill: (label, text) => hand.fill(page.getByLabel(label, { exact: true }).filter({ visible: true }).first(), text),
    async chooseFile(label, path) {
      const chooser = page.waitForEvent("filechooser");
      await use(page.getByLabel(label).first(), "Space");
      await (await chooser).setFiles(path);
    },
    async importFile(path, look) {
      const link = page.getByRole("link", { name: "Import…" });
      await (javaScriptEnabled ? use(link, "Enter") : leading(() => use(link, "Enter")));
      const field = page.locator("#import input[type=file]");
      await field.waitFor();
      const chooser = page.waitForEvent("filechooser");
      await use(field, "Space");
      await (await chooser).setFiles(path);
      const again = page.getByRole("button", { name: "Preview", exact: true });
      if (!javaScriptEnabled) await leading(() => use(again, "Space"));
      const button = page.getByRole("button", { name: /^Import \d/ });
      await button.waitFor();
      await look?.();
      await leading(() => use(button, "Space"));
    },
    slideToStart: (slider) => leading(() => hand.slideToStart(slider)),
    async sees(what) {
      const wanted = typeof what === "string" || what instanceof RegExp ? page.getByText(what) : what;
      const isThere = () => wanted.first().isVisible();
      if (way === "by mouse, without script") {
        if (await isThere()) return;
        const loadAgain = () => page.reload().then(isThere);
        return void (await until(loadAgain, (found) => found, SEEN_MS_MAX));
      }
      const loadedAt = () => page.evaluate(() => performance.timeOrigin);
      const before = await loadedAt();
      await wanted.first().waitFor({ state: "visible" });
      expect(await loadedAt()).toBe(before);
    },
  };
}

interface Hand {
  /**
   * Uses a link, button or other target: an operator with a mouse clicks it, and one with only a keyboard presses `key`
   * on it.
   */
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

/** Minimum size of a link or button in CSS pixels (WCAG 2.2, 2.5.8). A link within a sentence may be smaller. */
const TARGET_PX_MIN = 24;

/** Throws if a link or button is too small for a thumb or partly off the screen. */
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

/** Presses Tab until a link, button or field has focus, and checks that the focus is visible. */
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
    // The browser reports violations of the content policy, and responses with a status of 400 or more, as errors too.
    if (message.type() === "error") wrong.push(`${message.location().url}: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // When the operator leaves a page, the browser aborts the page's last requests and its stream. That is no error.
    if (why !== "net::ERR_ABORTED") wrong.push(`${request.url()}: ${why}`);
  });
}
