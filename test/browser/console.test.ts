// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { formatTime } from "../../src/console/parts/time.tsx";
import {
  faultsAtEnd,
  overhangOf,
  violationsInSchemes,
  violationsInState,
  violationsOf,
} from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { isWhole } from "../harness/case-count.ts";
import { signInByRequest } from "../harness/browser-operator.ts";
import { authorize, BEARER, exported, openInstallation, type Installation, type Running } from "../harness/process.ts";

const PATHS = [
  "/",
  "/people",
  "/links",
  "/people?search=long",
  "/people/@long",
  "/links/go.example/a",
  "/deliveries",
  "/results",
  "/runs",
  "/what-if",
  "/activity",
  "/activity?type=LinkClicked",
  "/activity/1",
  "/find?q=long",
  "/setup",
  "/docs",
  "/?as_of=12",
  "/people?as_of=5",
];

/** Types of events. The test opens the page of the newest event of each type, and the pages that it links to. */
const NAMING = ["DirectMessageSent", "RunStarted", "LinkClicked"];

const WIDTHS = [360, 768, 1_280] as const;

/** A word that is wider than a phone. The page must break it instead of becoming wider. */
const LONG = "x".repeat(400);

describe.skipIf(!hasBrowser)("the console in a browser", () => {
  let installation: Installation;
  let service: Running;
  let browser: Browser;

  beforeAll(async () => {
    installation = await openInstallation();
    const people = Array.from({ length: 12 }, (_, number) => `person_${number},opt_in,Person ${number}`);
    const file = installation.file(
      "people.csv",
      `username,basis,name\n${people.join("\n")}\nlong,none,${LONG}\nada_builds,opt_in,Ada\n`,
    );
    expect(await installation.command("recipients", "import", file)).toMatchObject({ code: 0 });
    service = await installation.serve();
    await authorize(service, installation.sandbox);
    await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
    for (const code of ["a", "a", "b", LONG.slice(0, 64)]) await click(code);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await installation?.[Symbol.asyncDispose]();
  });

  async function click(code: string): Promise<void> {
    const link = { domain: "go.example", short_code: code, original_url: "https://example.com/" };
    const response = await service.post(
      "/api/tracking/event",
      { ...link, event: "click", user_agent: "Firefox" },
      BEARER,
    );
    expect(response.status).toBe(202);
  }

  /**
   * Signs in with a new browser page. Collects failed scripts and violations of the content security policy in `wrong`.
   */
  async function signedIn(
    options: Parameters<Browser["newContext"]>[0] = {},
  ): Promise<{ page: Page; wrong: string[] }> {
    const page = await (await browser.newContext(options)).newPage();
    await signInByRequest(page, service);
    await page.goto(`${service.url}/`);
    await page.waitForSelector("text=Newest events");
    const wrong: string[] = [];
    page.on("pageerror", ({ message }) => wrong.push(message));
    page.on("console", (message) => {
      if (message.type() === "error") wrong.push(message.text());
    });
    return { page, wrong };
  }

  test("has accessible pages no wider than the screen, with exact times in sentences", async () => {
    const { page, wrong } = await signedIn();
    const named: string[] = [];
    for (const type of NAMING) {
      await page.goto(`${service.url}/activity?type=${type}`);
      const links = await page.locator(".lines li:first-child a").all();
      for (const link of links) named.push((await link.getAttribute("href")) ?? "");
    }
    const kinds = named.map((href) => href.split("/")[1] ?? "");
    expect(kinds.join(" ")).toBe("activity people activity runs activity links");
    for (const path of [...PATHS, ...named]) {
      await page.goto(service.url + path);
      const text = await page.locator("body").innerText();
      const relative = text.match(
        /.*\b(?:until|since|at|before|after|again|on) (?:now|in \d|\d+ \w+ ago|yesterday|tomorrow)\b.*/g,
      );
      expect([path, relative]).toEqual([path, null]);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        expect([path, width, await overhangOf(page), await faultsAtEnd(page)]).toEqual([path, width, 0, []]);
        if (width === 360) expect([path, width, ...(await violationsInSchemes(page))]).toEqual([path, width]);
        // A wide page has the same elements in another layout. An ordinary test run checks one wide page for all of
        // them.
        if (width === 1_280 && (isWhole || path === "/people"))
          expect([path, width, ...(await violationsInState(page))]).toEqual([path, width]);
      }
    }
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("fails the accessibility check for planted faults, in either scheme", async () => {
    const { page } = await signedIn();
    await page.evaluate(() => {
      const main = document.querySelector("main")!;
      main.append(document.createElement("img"), document.createElement("input"));
      Object.assign(main.querySelector("h1")!.style, { color: "gray", background: "#888" });
    });
    const found = (await violationsInSchemes(page)).map(([scheme, rule]) => `${scheme} ${rule}`);
    expect(found.toSorted()).toEqual(["dark color-contrast", "light color-contrast", "light image-alt", "light label"]);
    await page.context().close();
  });

  test("shows exact times in sentences, not relative ones such as until in 2 hours", async () => {
    const { page } = await signedIn();
    const authorized = (await exported(installation)).find(({ type }) => type === "AccountAuthorized");
    await page.goto(`${service.url}/activity/${authorized?.position}`);
    const sentence = await page.getByText("access token lasts until").first().innerText();
    const expires = String(authorized?.data["expires_at"]);
    const exact = formatTime(expires, "short", { language: "en-US", timezone: "UTC", now: Date.now() });
    expect(sentence).toEndWith(`its access token lasts until ${exact}`);
    await page.context().close();
  });

  test("has an accessible sign-in page", async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${service.url}/people`);
    expect(await violationsOf(page)).toEqual([]);
    await page.context().close();
  });

  test("shows a new click on an open page without a reload, and keeps open details open", async () => {
    const { page } = await signedIn();
    await page.goto(`${service.url}/links`);
    await page.click("main summary");
    await page.evaluate(() => {
      document.body.dataset["loaded"] = "once";
    });
    expect(await page.getByText("go.example/live").count()).toBe(0);
    await click("live");
    await page.waitForSelector("text=go.example/live");
    expect(await page.evaluate(() => document.body.dataset["loaded"])).toBe("once");
    expect(await page.evaluate(() => document.querySelector<HTMLDetailsElement>("main details")?.open)).toBe(true);
    await page.context().close();
  });

  test("keeps what is ticked, chosen and typed on an open page that is updated", async () => {
    installation.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
    for (const message of ["one", "two"])
      expect((await service.post("/api/notify", { message }, BEARER)).status).toBe(502);
    const { page } = await signedIn();
    const update = async () => {
      // Nothing has the focus.
      await page.evaluate(() => (document.activeElement as HTMLElement).blur());
      const before = await page.locator("main").getAttribute("data-position");
      await click("kept");
      await page.waitForFunction((at) => document.querySelector("main")?.dataset["position"] !== at, before);
    };
    await page.goto(`${service.url}/deliveries`);
    const ticks = page.locator("input[name=source]");
    for (const tick of await ticks.all()) await tick.check();
    await update();
    expect(await ticks.evaluateAll((all) => all.map((one) => (one as HTMLInputElement).checked))).toEqual([true, true]);

    await page.goto(`${service.url}/runs`);
    const form = page.locator("form[action='/console/run/dry']");
    await form.evaluate((element) => element.querySelector("details")?.setAttribute("open", ""));
    await form.locator("input[name=limit]").fill("7");
    await form.locator("select[name=basis]").selectOption("opt_in");
    await update();
    expect(await form.locator("input[name=limit]").inputValue()).toBe("7");
    expect(await form.locator("select[name=basis]").inputValue()).toBe("opt_in");
    await page.context().close();
  });

  test("keeps with a typed campaign the time of the last change that the operator saw", async () => {
    const change = (path: string, body: object) => service.post(`/social/campaigns/${path}`, body, BEARER);
    expect((await change("create", { name: "kept", text: "one" })).status).toBe(200);
    const { page } = await signedIn();
    await page.goto(`${service.url}/campaigns/kept`);
    const form = page.locator("form[action='/console/campaigns/change']");
    const seen = form.locator("input[name=changed_at]");
    const before = await seen.inputValue();
    await page.click("text=Change…");
    await form.locator("textarea[name=text]").fill("mine");
    await page.keyboard.press("Escape");
    expect((await change("change", { name: "kept", text: "newer" })).status).toBe(200);
    await page.waitForSelector("pre:has-text('newer')");
    expect([await form.locator("textarea[name=text]").inputValue(), await seen.inputValue()]).toEqual(["mine", before]);
    await page.click("text=Change…");
    await form.locator("button").click();
    // The service answers with a page that shows this error outside the dialog. The page's script then fills in the
    // typed values and opens the dialog with the error, so the test waits for the dialog.
    await page.waitForSelector("dialog[open] :text('was changed meanwhile, so nothing was saved')");
    expect(await seen.inputValue()).not.toBe(before);
    expect(await form.locator("details pre").textContent()).toBe("newer");
    expect(await form.locator("textarea[name=text]").inputValue()).toBe("mine");
    await page.context().close();
  });

  test("shows the count of a campaign's audience beside each of its fields", async () => {
    const { page } = await signedIn();
    await page.setViewportSize({ width: 1_440, height: 900 });
    await page.goto(`${service.url}/campaigns`);
    await page.click("text=New campaign…");
    const count = page.locator("dialog[open] output");
    await count.filter({ hasText: "may get a message now" }).waitFor();
    // The fields about an earlier message make the form longer than the window.
    await page.locator("dialog[open] [name=messaged]").selectOption("default");
    for (const name of ["name", "source", "messaged", "clicked"]) {
      const field = page.locator(`dialog[open] [name=${name}]`);
      await field.focus();
      const isOnTop = (element: Element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const x = (left + right) / 2;
        return [top + 2, bottom - 2].every((y) => element.contains(document.elementFromPoint(x, y)));
      };
      expect([name, await count.evaluate(isOnTop), await field.evaluate(isOnTop)]).toEqual([name, true, true]);
    }
    await page.context().close();
  });

  test("shows the moment of the slider, keeps it in links, and leads back to now", async () => {
    const { page, wrong } = await signedIn();
    await page.goto(`${service.url}/people?search=person`);
    const slider = page.locator("input[type=range]");
    const moment = encodeURIComponent(new Date(Number(await slider.getAttribute("min"))).toISOString());
    await page.keyboard.press("t");
    await slider.focus();
    await page.keyboard.press("Home");
    await page.waitForSelector(".past-bar >> text=You see");
    expect(new URL(page.url()).search).toBe(`?search=person&as_of=${moment}`);
    expect(await page.textContent("#connection")).toBe("Live updates are off");
    await page.click("text=Links");
    expect(new URL(page.url()).search).toBe(`?as_of=${moment}`);
    await page.waitForSelector("text=No clicks yet.");
    await page.click("text=Back to now");
    await page.waitForSelector("#connection:has-text('Live.')", { state: "attached" });
    expect(new URL(page.url()).search).toBe("");
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("has working filters without script", async () => {
    const { page } = await signedIn({ javaScriptEnabled: false });
    await page.goto(`${service.url}/people`);
    await page.fill("input[name=search]", "person_7");
    await page.click("text=Show");
    await page.waitForURL(/search=person_7/);
    expect(await page.locator("tbody tr").count()).toBe(1);
    expect(await page.textContent("tbody")).toContain("@person_7 (Person 7)");
    await page.goto(`${service.url}/activity?show=everything`);
    await page.click("summary:has-text('Filter')");
    await page.selectOption("select[name=type]", "RunStarted");
    await page.click("button:has-text('Show')");
    await page.click(".line .t a");
    expect(await page.textContent("h1")).toContain("Run started at position");
    await page.context().close();
  });

  test("imports a file, records consent and suppresses a recipient without script on a phone", async () => {
    const { page, wrong } = await signedIn({ viewport: { width: 360, height: 800 }, javaScriptEnabled: false });
    await page.goto(`${service.url}/people`);
    const buffer = Buffer.from(`username,basis,note\nby_file,opt_in,x\n${LONG},,\n`);
    await page.click("a:has-text('Import…')");
    await page.setInputFiles("#import input[type=file]", { name: "people.csv", mimeType: "text/csv", buffer });
    await page.click("#import button:has-text('Preview')");
    await page.selectOption("#map-2", "note=");
    await page.click("button:has-text('Preview again')");
    await page.click("button:has-text('Import 1 person')");
    await page.waitForSelector("text=1 added, 0 updated, 1 refused.");
    await page.goto(`${service.url}/people/@by_file`);
    await page.click("a:has-text('Record consent')");
    await page.selectOption("select[name=tracking]", "denied");
    await page.fill("input[name=tracking_source]", "mail");
    await page.click("button:has-text('Record consent of @by_file')");
    await page.waitForSelector("text=The consent is recorded.");
    expect(await page.textContent(".reasons")).toContain("Opted in; tracking denied by mail.");
    await page.goto(`${service.url}/people?search=by_file`);
    await page.click("a.button:text-is('Suppress')");
    await page.click("button:has-text('Suppress @by_file')");
    await page.waitForSelector("text=The recipient never gets a message again.");
    expect(await page.textContent("tbody")).toContain("Suppressed");
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("focuses the search box on the key /, except in a text field", async () => {
    const { page } = await signedIn();
    await page.goto(`${service.url}/people`);
    const isFound = () => page.evaluate(() => document.activeElement?.matches(".find input"));
    await page.focus("input[name=search]");
    await page.keyboard.press("/");
    expect(await page.inputValue("input[name=search]")).toBe("/");
    expect(await isFound()).toBe(false);
    await page.focus("main a");
    await page.keyboard.press("Control+/");
    expect(await isFound()).toBe(false);
    await page.keyboard.press("/");
    expect(await isFound()).toBe(true);
    await page.keyboard.type("Why did @ada_builds get a message?");
    await page.keyboard.press("Enter");
    await page.waitForSelector("h2:has-text('Why did @ada_builds get a message?')");
    expect(await page.title()).toContain("@ada_builds");
    await page.context().close();
  });

  test.each([1_440, 390])("opens an event in a panel at %d pixels, and returns when it is closed", async (width) => {
    const { page, wrong } = await signedIn({ viewport: { width, height: 800 } });
    await page.goto(`${service.url}/activity?type=LinkClicked`);
    const link = page.locator(".line .t a").nth(1);
    const href = (await link.getAttribute("href")) ?? "";
    await link.focus();
    await page.keyboard.press("Enter");
    const panel = page.locator("#panel");
    await panel.locator(`h1:has-text('at position ${href.split("/").at(-1)}')`).waitFor();
    expect(new URL(page.url()).pathname).toBe(href);
    expect(await page.locator("#main h1").innerText()).toBe("Activity");
    for (const part of ["caller", "request id", "trace", "previous hash", "prove it", '"original_url"']) {
      expect((await panel.innerText()).toLowerCase()).toContain(part);
    }
    expect(await violationsOf(page)).toEqual([]);
    expect(await overhangOf(page)).toBe(0);
    await panel.getByRole("link", { name: "Previous" }).click();
    await page.waitForURL((url) => url.pathname !== href);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.waitForURL(/type=LinkClicked/);
    expect(await panel.isVisible()).toBe(false);
    await page.waitForFunction((wanted) => document.activeElement?.getAttribute("href") === wanted, href);

    await link.click();
    await panel.locator("h1").waitFor();
    await page.goBack();
    await panel.waitFor({ state: "hidden" });
    await page.goForward();
    await panel.locator("h1").waitFor();
    await page.reload();
    expect(await page.locator("#main h1").innerText()).toContain("at position");
    await page.evaluate(() => history.back());
    await page.waitForSelector("#main h1:has-text('Activity')");
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("applies a filter when a field changes, and the field keeps the focus", async () => {
    const { page, wrong } = await signedIn();
    await page.goto(`${service.url}/activity`);
    await page.click("summary:has-text('Filter')");
    expect(await page.getByRole("button", { name: "Show" }).isVisible()).toBe(false);
    await page.selectOption("select[name=type]", "LinkClicked");
    await page.waitForSelector(".chips >> text=Link clicked");
    await page.selectOption("select[name=type]", "RunStarted");
    await page.waitForSelector(".chips >> text=Run started");
    await page.fill("input[name=from]", "2");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/activity?type=LinkClicked&type=RunStarted&from=2");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("from");
    await page.goBack();
    await page.waitForURL((url) => url.search === "?type=LinkClicked&type=RunStarted");
    await page.waitForSelector(".chips >> text=Run started");
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>("input[name=from]")?.value === "");
    expect(await page.locator("#moment a").first().getAttribute("href")).toContain("type=RunStarted");
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test.each([1_440, 390])(
    "moves over a chart's bars by arrow keys at %d pixels, and reads each bar out",
    async (width) => {
      const { page, wrong } = await signedIn({ viewport: { width, height: 800 } });
      await page.goto(`${service.url}/?range=7d`);
      await page.waitForSelector("#connection:has-text('Live.')", { state: "attached" });
      const chart = page.locator("figure", { hasText: "Messages per day, last 7 days" });
      const read = chart.locator("output");
      await chart.locator(".plot").focus();
      await page.keyboard.press("ArrowLeft");
      const today = await read.innerText();
      expect(today).toMatch(/^[A-Z][a-z]{2} \d{1,2}: [1-9]\d* sent, \d+ skipped, 0 failed$/);
      await page.keyboard.press("ArrowLeft");
      expect(await read.innerText()).toMatch(/: 0 sent, 0 skipped, 0 failed$/);
      await page.keyboard.press("End");
      expect(await read.innerText()).toBe(today);
      const at = await page.locator("main").getAttribute("data-position");
      await click("read");
      await page.waitForSelector(`main:not([data-position="${at}"])`);
      expect(await read.innerText()).toBe(today);
      expect(await chart.locator("[data-on]").count()).toBe(1);
      expect(await violationsOf(page)).toEqual([]);
      expect(await overhangOf(page)).toBe(0);
      await page.fill("input[name=from]", "2026-01-01");
      await page.fill("input[name=to]", "2026-01-10");
      await page.waitForSelector("text=Messages per day, 2026-01-01 to 2026-01-10");
      expect(await page.locator("figure output").allInnerTexts()).not.toContain(today);
      expect(wrong).toEqual([]);
      await page.context().close();
    },
  );

  test("leads by keyboard alone to an event", async () => {
    const { page } = await signedIn();
    await page.goto(`${service.url}/activity?show=everything`);
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("Skip to the content");
    await page.focus(".line .t a");
    await page.keyboard.press("Enter");
    await page.waitForSelector("h1:has-text('at position')");
    await page.context().close();
  });

  test("reports a killed service as lost, then reconnects and shows all missed events", async () => {
    const { page } = await signedIn();
    await page.goto(`${service.url}/activity?show=everything`);
    await page.waitForSelector("#connection:has-text('Live')");
    const { url } = service;
    service.process.kill("SIGKILL");
    await service.process.exited;
    await page.waitForSelector("#connection:has-text('Connection lost')");
    service = await installation.serve({ PORT: new URL(url).port });
    await click("back");
    await page.waitForSelector("#connection:has-text('Live')");
    await page.waitForSelector("ol.lines li:has-text('go.example/back')");
    const hrefs = await page
      .locator("ol.lines li .t a")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    const shown = hrefs.map((href) => Number(href?.split("/").at(-1)));
    const logged = (await exported(installation)).map(({ position }) => position).toReversed();
    // The log keeps growing, so the page is compared with the log up to the newest event that the page shows.
    const newest = logged.slice(logged.indexOf(shown[0] ?? 0));
    expect(shown).toEqual(newest.slice(0, 100));
    await page.context().close();
  });
});
