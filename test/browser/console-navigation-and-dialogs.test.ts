// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page, Route } from "playwright-core";
import { overhangOf, violationsInSchemes } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { operatorOf, type Operator } from "../harness/browser-operator.ts";
import { openInstallation, TOKEN, type Installation, type Running } from "../harness/process.ts";

const WIDTHS = [1_440, 390] as const;

describe.skipIf(!hasBrowser)("the frame of the console", () => {
  let installation: Installation;
  let service: Running;
  let browser: Browser;
  const seats = new Map<number, Operator>();

  beforeAll(async () => {
    installation = await openInstallation();
    const names = ["tessa_builds", "tessa_tunes", "yuki_tests", "ines_writes", "terry", "nora"];
    const file = installation.file(
      "people.csv",
      `username,basis\n${names.map((name) => `${name},opt_in`).join("\n")}\n`,
    );
    expect(await installation.command("recipients", "import", file)).toMatchObject({ code: 0 });
    service = await installation.serve();
    browser = await launchBrowser();
    for (const width of WIDTHS) {
      const viewport = { width, height: 844 };
      const operator = await operatorOf(browser, "by mouse", { viewport, hasTouch: width < 500, locale: "en-GB" });
      await operator.page.goto(`${service.url}/people`);
      await operator.fill("Token", TOKEN);
      await operator.press("Sign in");
      operator.wrong.splice(0);
      seats.set(width, operator);
    }
  });
  afterAll(async () => {
    await browser?.close();
    await installation?.[Symbol.asyncDispose]();
  });

  async function openAt(width: number, path: string): Promise<Page> {
    const { page } = seats.get(width)!;
    await page.goto(service.url + path);
    return page;
  }

  async function expectAccessible(page: Page): Promise<void> {
    expect([await overhangOf(page), await violationsInSchemes(page)]).toEqual([0, []]);
  }

  test.each(WIDTHS)("search suggests while one types, and opens the chosen hit, at %d px", async (width) => {
    const page = await openAt(width, "/people");
    await page.keyboard.press("/");
    await page.keyboard.type("te");
    const list = page.getByRole("listbox", { name: "Suggestions" });
    await list.waitFor();
    expect(await list.getByRole("option").count()).toBe(5);
    expect(await list.getByRole("option").last().innerText()).toBe("All 5 people");
    expect(await list.innerText()).toContain("4 of 5");
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    expect(await list.isVisible()).toBe(false);
    await page.keyboard.type("ss");
    await list.waitFor();
    await page.keyboard.press("ArrowDown");
    await Promise.all([page.waitForURL(/\/people\/@tessa_tunes$/), page.keyboard.press("Enter")]);
    await page.getByRole("combobox").fill("yuki");
    const option = page.getByRole("option", { name: /yuki_tests/ });
    await Promise.all([page.waitForURL(/\/people\/@yuki_tests$/), width < 500 ? option.tap() : option.click()]);
    await page.getByRole("combobox").fill("te");
    await list.getByRole("option", { name: "All 5 people" }).waitFor();
    await page.keyboard.press("ArrowUp");
    await Promise.all([page.waitForURL(/\/people\?search=te$/), page.keyboard.press("Enter")]);
  });

  test.each(WIDTHS)(
    "late suggestions neither change an arrow key's choice nor open a closed list, at %d px",
    async (width) => {
      const page = await openAt(width, "/people");
      const list = page.getByRole("listbox", { name: "Suggestions" });
      const chosen = list.getByRole("option", { selected: true });
      const held: Route[] = [];
      await page.route(/[?&]q=tess?&/, (route) => void held.push(route));
      const type = async (letter: string): Promise<void> => {
        const fetched = page.waitForRequest(/\/find\?/);
        await page.keyboard.type(letter);
        await fetched;
      };
      const answer = async (): Promise<void> => {
        const answered = page.waitForEvent("requestfinished");
        await held.shift()!.continue();
        await answered;
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
      };
      const open = async (): Promise<void> => {
        await page.getByRole("combobox", { name: /^Why did/ }).fill("te");
        await list.waitFor();
        await type("s");
      };

      await open();
      await page.keyboard.press("ArrowDown");
      await answer();
      expect(await chosen.innerText()).toContain("tessa_tunes");
      await type("s");
      await page.keyboard.press("Escape");
      await answer();
      expect(await list.isVisible()).toBe(false);
      await open();
      await page.keyboard.press("ArrowDown");
      await Promise.all([page.waitForURL(/\/people\/@tessa_tunes$/), page.keyboard.press("Enter")]);
      await page.unrouteAll();
    },
  );

  test.each(WIDTHS)("three clicks lead from Overview to a new follow-up campaign, at %d px", async (width) => {
    const page = await openAt(width, "/");
    let clicks = 0;
    const click = async (role: "button" | "link", name: string): Promise<void> => {
      clicks++;
      const target = page.getByRole(role, { name, exact: true }).filter({ visible: true }).first();
      await (width < 500 ? target.tap() : target.click());
    };
    await click("link", "Campaigns");
    await page.waitForURL(/\/campaigns$/);
    await expectAccessible(page);
    await click("button", "Follow up default…");
    const dialog = page.getByRole("dialog", { name: "Follow up default" });
    const name = width === WIDTHS[0] ? "default-follow-up" : "default-follow-up-2";
    await dialog.waitFor();
    expect(await dialog.getByLabel("Name", { exact: true }).inputValue()).toBe(name);
    expect(await dialog.getByLabel("Got a message of").inputValue()).toBe("default");
    expect(await dialog.getByLabel("Since then they").inputValue()).toBe("");
    await expectAccessible(page);
    await dialog.locator("textarea[name=text]").fill(`Still on, {{name|there}}? Reply STOP to end this.`);
    await click("button", "Create campaign");
    await page
      .getByText(`The campaign ${name} was created, for recipients who got a message of default and did not reply.`)
      .waitFor();
    expect(clicks).toBeLessThanOrEqual(3);
  });

  test.each(WIDTHS)("the slider's track keeps its place while its thumb is dragged, at %d px", async (width) => {
    const page = await openAt(width, "/people");
    await page.keyboard.press("t");
    const slider = page.getByRole("slider");
    const box = () => slider.evaluate((track) => JSON.stringify(track.getBoundingClientRect()));
    const { x, y, width: length, height } = (await slider.boundingBox())!;
    const before = await box();
    await expectAccessible(page);
    await page.mouse.move(x + length - 9, y + height / 2);
    await page.mouse.down();
    for (const share of [0.9, 0.5, 0.2, 0.01]) {
      await page.mouse.move(x + length * share, y + height / 2);
      expect(await box()).toBe(before);
    }
    await Promise.all([page.waitForURL(/as_of=/), page.mouse.up()]);
    await page.locator(".past-bar").waitFor();
    expect(await page.title()).toMatch(/^\d+ \w+, \d\d:\d\d: People · reachlog$/);
    await expectAccessible(page);
  });

  test.each(WIDTHS)("a dialog asks, Cancel has the focus, and the focus returns, at %d px", async (width) => {
    const page = await openAt(width, "/people/@nora");
    const place = () =>
      page
        .locator("h1")
        .first()
        .evaluate((head) => JSON.stringify(head.getBoundingClientRect()));
    const before = await place();
    await page.getByRole("link", { name: "Forget", exact: true }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Forget @nora?" });
    await dialog.waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Cancel");
    expect(await place()).toBe(before);
    const forget = dialog.getByRole("button", { name: /Forget @nora/ });
    expect(await forget.isDisabled()).toBe(true);
    await dialog.getByLabel(/Type @nora/).fill("@nora");
    expect(await forget.isEnabled()).toBe(true);
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    expect(await dialog.isVisible()).toBe(false);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Forget");
  });

  test("single keys lead through the console until they are switched off", async () => {
    const page = await openAt(1_440, "/people");
    await page.keyboard.press("j");
    const line = () => page.evaluate(() => document.activeElement?.closest("tr, li")?.textContent ?? "");
    const first = await line();
    await page.keyboard.press("j");
    expect(await line()).not.toBe(first);
    await page.keyboard.press("k");
    expect(await line()).toBe(first);
    await page.keyboard.press("g");
    await Promise.all([page.waitForURL(/\/activity$/), page.keyboard.press("a")]);
    await Promise.all([page.waitForURL(/as_of=/), page.keyboard.press("[")]);
    await Promise.all([page.waitForURL(/\/activity\??$/), page.keyboard.press("n")]);
    await page.keyboard.press("?");
    const keys = page.getByLabel("Keyboard shortcuts").and(page.locator("section"));
    await keys.waitFor();
    await keys.getByRole("checkbox").click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    expect(await page.locator("#moment").isVisible()).toBe(false);
    await page.evaluate(() => localStorage.clear());
  });

  test("a phone's header is one row of 56 px, at most 120 px in the past, and the page scrolls no further", async () => {
    for (const [path, most] of [
      ["/people", 57],
      ["/people?as_of=yesterday", 120],
      ["/people?as_of=1", 120],
    ] as const) {
      const page = await openAt(390, path);
      const { height } = (await page.locator(".top").boundingBox())!;
      expect([path, height <= most]).toEqual([path, true]);
    }
    const page = await openAt(390, "/people");
    expect((await page.locator("h1").boundingBox())?.y).toBeLessThan(80);
    await page.getByRole("button", { name: "More" }).tap();
    await page.getByRole("navigation", { name: "More pages" }).getByRole("link", { name: "Runs" }).waitFor();
    await expectAccessible(page);
    expect(seats.get(390)!.wrong).toEqual([]);
  });
});
