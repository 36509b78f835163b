// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { MARKETERS_LIST } from "../fixtures/marketers-list.ts";
import { PEOPLE_SHOWN } from "../../src/console/pages/people.tsx";
import { overhangOf, violationsInState } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { isWhole } from "../harness/case-count.ts";
import { operatorOf, signInByRequest, type Operator } from "../harness/browser-operator.ts";
import { authorize, BEARER, openInstallation, TOKEN, type Installation, type Running } from "../harness/process.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

const WIDTHS = [1_440, 390] as const;
const PEOPLE = PEOPLE_SHOWN + 10;

describe.skipIf(!hasBrowser)("lists, notices and the past", () => {
  let installation: Installation;
  let service: Running;
  let browser: Browser;

  beforeAll(async () => {
    installation = await openInstallation();
    const rows = Array.from({ length: PEOPLE }, (_, at) => `p_${String(at).padStart(3, "0")},none,P ${at}`);
    const file = installation.file("people.csv", `username,basis,name\n${rows.join("\n")}\nada_builds,opt_in,Ada\n`);
    expect(await installation.command("recipients", "import", file)).toMatchObject({ code: 0 });
    service = await installation.serve();
    await authorize(service, installation.sandbox);
    await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
    const click = { event: "click", domain: "go.example", original_url: "https://example.com/" };
    for (const short_code of ["a", "b", "b"]) {
      const answer = await service.post("/api/tracking/event", { ...click, short_code, user_agent: FIREFOX }, BEARER);
      expect(answer.status).toBe(202);
    }
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await installation?.[Symbol.asyncDispose]();
  });

  async function signedIn(width: number, way: Parameters<typeof operatorOf>[1] = "by mouse"): Promise<Operator> {
    const operator = await operatorOf(browser, way, { viewport: { width, height: 800 }, timezoneId: "UTC" });
    await signInByRequest(operator.page, service);
    return operator;
  }

  /**
   * Checks the state that a page is in. The wide page has the same elements as the page on a phone, so accessibility
   * rules are checked only on the phone.
   */
  async function check(page: Page): Promise<void> {
    const hasRules = isWhole || page.viewportSize()!.width === 390;
    expect([await overhangOf(page), hasRules ? await violationsInState(page) : []]).toEqual([0, []]);
  }

  async function leave(operator: Operator): Promise<void> {
    await check(operator.page);
    await close(operator);
  }

  async function close({ page, wrong }: Operator): Promise<void> {
    expect(wrong).toEqual([]);
    await page.context().close();
  }

  const namesOn = (page: Page) => page.locator("tbody th").allInnerTexts();

  test("on a phone a rate has the width of its card, its label above and the axis below", async () => {
    const operator = await signedIn(390);
    const { page } = operator;
    await page.goto(`${service.url}/results`);
    const row = page.locator(".rates li").first();
    const places = [row.locator("span").first(), row.locator("svg"), page.locator(".rates .axis svg").first()];
    const [label, bar, axis] = await Promise.all(places.map((place) => place.boundingBox()));
    expect(label!.y + label!.height).toBeLessThanOrEqual(bar!.y + 1);
    expect(bar!.width).toBeGreaterThan(280);
    expect(axis).toMatchObject({ x: bar!.x, width: bar!.width });
    expect(axis!.y).toBeGreaterThan(bar!.y);
    await page.locator("select[name=by]").selectOption("run");
    await page.getByRole("heading", { name: "Rates by run" }).waitFor();
    await leave(operator);
  });

  test("on a phone no line of values begins with the dot between two values", async () => {
    const operator = await signedIn(390);
    const { page } = operator;
    let lines = 0;
    for (const path of ["/runs", "/people?sort=message&order=descending"]) {
      await page.goto(service.url + path);
      const indents = await page.locator(".tall tbody tr:has(td)").evaluateAll((rows) =>
        rows.map((row) => {
          const range = document.createRange();
          const cells = [...row.querySelectorAll("td:not(.state)")].filter((cell) => cell.checkVisibility());
          const starts = new Map<number, number>();
          for (const cell of cells) {
            range.selectNodeContents(cell);
            for (const { bottom, left, width } of range.getClientRects()) {
              const line = Math.round(bottom / 8);
              if (width > 0) starts.set(line, Math.min(starts.get(line) ?? Infinity, left));
            }
          }
          const inside = row.getBoundingClientRect().left + parseFloat(getComputedStyle(row).paddingLeft);
          return [...starts.values()].map((left) => Math.round(left - inside));
        }),
      );
      lines = Math.max(lines, ...indents.map(({ length }) => length));
      expect([path, [...new Set(indents.flat())]]).toEqual([path, [0]]);
    }
    expect(lines).toBeGreaterThan(1);
    await leave(operator);
  });

  test.each(WIDTHS)("people are sorted by a column head, over several pages, %d px wide", async (width) => {
    const operator = await signedIn(width);
    const { page } = operator;
    await page.goto(`${service.url}/people`);
    expect((await namesOn(page))[0]).toBe("@ada_builds (Ada)");
    const sort = async (head: string, order: string) => {
      await operator.followInPlace(head);
      await page.locator(`th[aria-sort=${order}] a`, { hasText: head }).waitFor();
    };
    await sort("last message", "descending");
    expect((await namesOn(page))[0]).toBe("@ada_builds (Ada)");
    await sort("person", "ascending");
    await sort("person", "descending");
    const [first] = await namesOn(page);
    expect(first).toBe(`@p_0${PEOPLE - 1} (P ${PEOPLE - 1})`);
    await operator.follow("More people");
    expect((await namesOn(page)).at(-1)).toBe("@ada_builds (Ada)");
    expect(await page.locator("tbody tr").count()).toBe(PEOPLE + 1 - PEOPLE_SHOWN);
    await leave(operator);
  });

  test.each(WIDTHS)(
    "a list is sorted, and a range chosen, where the window is scrolled to, %d px wide",
    async (width) => {
      const operator = await signedIn(width);
      const { page } = operator;
      await page.goto(`${service.url}/links`);
      const head = page.getByRole("columnheader", { name: "link" }).getByRole("link");
      const place = async () => Math.round((await head.boundingBox())!.y);
      await page.evaluate(() => scrollTo({ top: 300, behavior: "instant" }));
      const [scrolled, before] = [await page.evaluate(() => scrollY), await place()];
      expect(scrolled).toBeGreaterThan(100);
      const loadedAt = await page.evaluate(() => performance.timeOrigin);
      await head.click();
      await page.locator("th[aria-sort=ascending]", { hasText: "link" }).waitFor();
      expect(await page.locator(".tall tbody th").allInnerTexts()).toEqual(["go.example/a", "go.example/b"]);
      expect([await page.evaluate(() => scrollY), await place()]).toEqual([scrolled, before]);
      expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/link/i);
      await page.getByRole("link", { name: "24 h" }).click();
      await page.getByText("Clicks per hour, last 24 hours").waitFor();
      expect(new URL(page.url()).search).toBe("?sort=link&order=ascending&range=24h");
      await page.goBack();
      await page.getByText("Clicks per day").waitFor();
      expect(await page.evaluate(() => performance.timeOrigin)).toBe(loadedAt);
      await leave(operator);
    },
  );

  test("on a phone no time is cut off in a list, whatever the numbers beside it", async () => {
    const operator = await signedIn(390);
    const { page } = operator;
    for (const path of ["/links", "/people?sort=message&order=descending"]) {
      await page.goto(service.url + path);
      const cut = await page.locator(".tall tbody tr").evaluateAll((rows) =>
        rows.flatMap((row) => {
          for (const cell of row.querySelectorAll(".number")) cell.textContent = "1,234,567";
          const reasons = [...row.querySelectorAll("td")].find((cell) => cell.textContent === "opted in");
          if (reasons !== undefined) reasons.textContent = "opted in, cannot receive messages from us";
          const [time, end] = [row.querySelector("time")?.getBoundingClientRect(), row.getBoundingClientRect()];
          if (time === undefined) return [];
          return [time.bottom > end.bottom || time.right > end.right || time.height === 0 ? row.textContent : "whole"];
        }),
      );
      expect([path, new Set(cut)]).toEqual([path, new Set(["whole"])]);
    }
    await leave(operator);
  });

  test.each(WIDTHS)(
    "a changed filter applies at once, keeps the focus, and Back undoes it, %d px wide",
    async (width) => {
      const operator = await signedIn(width);
      const { page } = operator;
      await page.goto(`${service.url}/people?sort=person&order=descending`);
      if (width < 500) await operator.unfold("Filter");
      expect(await page.getByRole("button", { name: "Show" }).count()).toBe(0);
      const status = page.locator("select[name=status]");
      const loadedAt = await page.evaluate(() => performance.timeOrigin);
      await status.focus();
      await status.selectOption("sent");
      // The pattern must match from the start of the text, because the text without a filter has the same end.
      await page.waitForSelector(`text=/^1 of ${PEOPLE + 1} people\\./`);
      expect(await namesOn(page)).toEqual(["@ada_builds (Ada)"]);
      expect(new URL(page.url()).search).toBe("?sort=person&order=descending&status=sent");
      expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("status");
      expect(await page.evaluate(() => performance.timeOrigin)).toBe(loadedAt);
      await page.goBack();
      await page.waitForSelector(`text=${PEOPLE + 1} of ${PEOPLE + 1} people.`);
      await leave(operator);
    },
  );

  test.each([
    [1_440, "by mouse"],
    [1_440, "by keyboard alone"],
    [390, "by mouse"],
  ] as const)("a line of the news unfolds to its clicks and folds again, %d px wide, %s", async (width, way) => {
    const operator = await signedIn(width, way);
    const { page } = operator;
    await page.goto(`${service.url}/activity`);
    const line = "summary:has-text('3 clicks by people on 2 links')";
    const link = page.getByRole("link", { name: "go.example/b" });
    expect(await link.isVisible()).toBe(false);
    await operator.open(line);
    await link.waitFor();
    expect(await page.locator("details[open] .tally tbody tr").allInnerTexts()).toEqual([
      "go.example/b\t2\t0",
      "go.example/a\t1\t0",
    ]);
    await check(page);
    await operator.open(line);
    await link.waitFor({ state: "hidden" });
    await close(operator);
  });

  test("a line of the news unfolds by touch", async () => {
    const operator = await operatorOf(browser, "by mouse", {
      viewport: { width: 390, height: 800 },
      hasTouch: true,
      timezoneId: "UTC",
    });
    const { page } = operator;
    await page.goto(service.url);
    operator.wrong.splice(0);
    await operator.fill("Token", TOKEN);
    await operator.press("Sign in");
    await page.goto(`${service.url}/activity`);
    await page.locator("summary:has-text('clicks by people')").first().tap();
    await page.getByRole("link", { name: "go.example/b" }).waitFor();
    await leave(operator);
  });

  test.each(["/people", "/links", "/results", "/runs", "/setup"])(
    "each row of %s is its name and state, then all else in words, on a phone",
    async (path) => {
      const operator = await signedIn(390);
      const { page } = operator;
      await page.goto(service.url + path);
      const rows = await page
        .locator("tbody tr")
        .filter({ visible: true })
        .evaluateAll((all) =>
          all.map((row) => ({
            isCut: [...row.children].some((cell) => cell.getBoundingClientRect().right > innerWidth),
            numbers: [...row.querySelectorAll("td.number:not([data-blank])")].map(
              (cell) => getComputedStyle(cell, "::after").content,
            ),
            isNextToName: [...row.querySelectorAll(".state")].every(
              (cell) => cell.getBoundingClientRect().top < row.firstElementChild!.getBoundingClientRect().bottom,
            ),
          })),
        );
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.filter(({ isCut, isNextToName }) => isCut || !isNextToName)).toEqual([]);
      expect(rows.flatMap(({ numbers }) => numbers).filter((unit) => unit === "none")).toEqual([]);
      const hidden = page.locator("tbody :is(th, td):not([data-blank])").filter({ visible: false });
      // A chart's table may hide its cells, because it is folded away. No other table may hide any.
      expect(await hidden.evaluateAll((all) => all.filter((cell) => cell.closest("details") === null).length)).toBe(0);
      // Each table has roles that keep it a table for screen readers, even where its layout is that of a list. A
      // chart's table of numbers keeps its layout and needs no roles.
      expect(await page.locator(":is(table, tr, th, td):not([role], .tally, .tally *)").count()).toBe(0);
      expect(
        await page
          .locator(".scroll")
          .filter({ visible: true })
          .first()
          .evaluate((region) => region.scrollHeight - region.clientHeight),
      ).toBe(0);
      await close(operator);
    },
  );

  test.each([
    [1_440, "by keyboard alone"],
    [390, "by mouse"],
    [390, "by mouse, without script"],
  ] as const)("a notice goes when it is dismissed, or the page left, %d px wide, %s", async (width, way) => {
    const operator = await signedIn(width, way);
    const { page } = operator;
    const name = `@p_0${WIDTHS.indexOf(width)}${way.length % 10}`;
    await page.goto(`${service.url}/people/${name}`);
    await operator.unfold("Suppress");
    await operator.press(`Suppress ${name}`);
    const notice = page.getByRole("status").filter({ hasText: "The recipient never gets a message again." });
    await operator.sees(notice);
    if (way !== "by mouse, without script") await check(page);
    const { href } = new URL(page.url());
    if (way === "by mouse") await page.reload();
    else await page.getByRole("link", { name: "Dismiss" }).press("Enter");
    await notice.waitFor({ state: "detached" });
    expect(page.url().replace(/\?$/, "")).toBe(href);
    await close(operator);
  });

  test.each([
    [1_440, "by mouse"],
    [390, "by mouse"],
    [390, "by mouse, without script"],
  ] as const)("a chosen date and time shows that moment and the changes since, %d px wide, %s", async (width, way) => {
    const operator = await signedIn(width, way);
    const { page } = operator;
    await page.goto(service.url);
    await operator.openOver(/Look at another moment/);
    await operator.fill("Moment", "1 Jan 2020, 18:00");
    await operator.press("Go");
    await operator.sees(", before the first event");
    expect(new URL(page.url()).search).toBe("?as_of=2020-01-01T18%3A00Z");
    const changes = page.getByLabel("What changed since");
    expect(await changes.innerText()).toContain(`Recipients +${PEOPLE + 1} (0 → ${PEOPLE + 1})`);
    expect(await changes.innerText()).toContain("Sent +1 (0 → 1)");
    expect(await changes.innerText()).toContain("Clicks by people +3 (0 → 3)");
    await operator.openOver(/Look at another moment/);
    await operator.follow(/^Before run /);
    expect(await changes.innerText()).toContain(`Recipients ±0 (${PEOPLE + 1} → ${PEOPLE + 1})`);
    // The bar stays visible while the page scrolls.
    await page.mouse.wheel(0, 5_000);
    await operator.sees(page.locator(".past-bar"));
    expect(await page.locator(".past-bar").evaluate((bar) => Math.round(bar.getBoundingClientRect().top))).toBe(56);
    if (way === "by mouse") await check(page);
    await operator.follow("Back to now");
    expect(await page.locator(".past-bar").count()).toBe(0);
    await page.context().close();
  });

  test.each(WIDTHS)("an import is previewed in a dialog, which follows each choice, %d px wide", async (width) => {
    const operator = await signedIn(width);
    const { page } = operator;
    await page.goto(`${service.url}/people`);
    await page.getByRole("link", { name: "Import…" }).click();
    await page.setInputFiles("dialog[open] input[type=file]", {
      name: "december.csv",
      mimeType: "text/csv",
      buffer: Buffer.from(MARKETERS_LIST),
    });
    await operator.sees(page.getByRole("button", { name: /^Import \d+ people$/ }));
    await check(page);
    const column = page.getByLabel("Opted in", { exact: true });
    await column.focus();
    await column.selectOption("do not import");
    await operator.sees(page.locator(".sums").getByText("0", { exact: true }).first());
    await operator.sees("Nothing would be imported.");
    // The field in which the operator chose still has the focus.
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("map-3");
    // A link that has the focus is updated too: it shows its new number.
    const refused = page.locator(".sums a");
    await refused.evaluate((link) => {
      link.textContent = "0";
      link.focus();
    });
    await column.evaluate((select) => select.dispatchEvent(new Event("change", { bubbles: true })));
    await operator.sees(refused.getByText(/^[1-9]/));
    expect(await refused.evaluate((link) => document.activeElement === link)).toBe(true);
    await page.getByRole("link", { name: "Cancel" }).click();
    expect(await page.locator("dialog[open]").count()).toBe(0);
    await close(operator);
  });

  test.each(WIDTHS)("Preview waits for the preview that the file started, and says so, %d px wide", async (width) => {
    const operator = await signedIn(width);
    const { page } = operator;
    const go = Promise.withResolvers<void>();
    let previews = 0;
    await page.route("**/console/recipients/preview", async (route) => {
      previews += 1;
      await go.promise;
      await route.continue();
    });
    await page.goto(`${service.url}/people`);
    await page.getByRole("link", { name: "Import…" }).click();
    const buffer = Buffer.from("X-Handle,Einwilligung am\nann_new,2025-03-02\nbea_new,2025-03-02\n");
    await page.setInputFiles("dialog[open] input[type=file]", { name: "list.csv", mimeType: "text/csv", buffer });
    await operator.sees("Reading the file…");
    await page.locator("dialog[open]").getByRole("button", { name: "Preview" }).click();
    go.resolve();
    await operator.sees("This file says when people agreed, not how: choose the basis for all rows.");
    expect([previews, new URL(page.url()).pathname]).toEqual([1, "/people"]);
    expect(await page.getByText("Reading the file…").isVisible()).toBe(false);
    await check(page);

    const source = page.getByLabel("Source of consent", { exact: true });
    await source.fill("Newsletter form");
    await source.press("Enter");
    await page.getByLabel("Basis of consent").selectOption("opted in");
    await operator.sees("Imports 2 people; 2 of them with consent.");
    expect(await source.inputValue()).toBe("Newsletter form");
    expect(new URL(page.url()).pathname).toBe("/people");
    operator.wrong.splice(0);
    await leave(operator);
  });

  test("a file that cannot be previewed stays chosen in the dialog, beside the reason", async () => {
    const operator = await signedIn(1_440);
    const { page } = operator;
    await page.goto(`${service.url}/people`);
    await page.getByRole("link", { name: "Import…" }).click();
    const dialog = page.locator("dialog[open]");
    const choose = (name: string, text: string) =>
      page.setInputFiles("dialog[open] input[type=file]", { name, mimeType: "text/csv", buffer: Buffer.from(text) });
    const chosen = () =>
      dialog.locator("input[type=file]").evaluate((input) => (input as HTMLInputElement).files?.[0]?.name);
    await choose("people.xlsx", "PK");
    await dialog.getByRole("alert").filter({ hasText: "this is a workbook" }).waitFor();
    expect(await chosen()).toBe("people.xlsx");
    await page.context().setOffline(true);
    await choose("people.csv", "username,basis\nann_new,opt_in\n");
    await dialog.getByRole("alert").filter({ hasText: "The service did not answer" }).waitFor();
    expect([await chosen(), await dialog.getByRole("alert").count()]).toEqual(["people.csv", 1]);
    expect(await violationsInState(page)).toEqual([]);
    await page.context().setOffline(false);
    await dialog.getByRole("button", { name: "Preview" }).click();
    await operator.sees("Imports 1 person; 1 of them with consent, 1 without its date or source.");
    expect(await dialog.getByRole("alert").count()).toBe(0);

    // Offline, the choice of `do not import` for the column `basis` fails like the choice of a file above. The preview
    // from before the choice stays, and the operator can request it again with the button.
    await page.context().setOffline(true);
    await dialog.getByLabel("basis", { exact: true }).selectOption("do not import");
    await dialog.getByRole("alert").filter({ hasText: "The service did not answer" }).waitFor();
    await page.context().setOffline(false);
    const again = dialog.getByRole("button", { name: /^Preview/ });
    await again.click();
    await operator.sees("Imports 1 person; 0 of them with consent.");
    expect(await again.isVisible()).toBe(false);
    // The browser reports the refused and the failed requests of this test as errors. They are expected.
    operator.wrong.splice(0);
    await leave(operator);
  });

  test.each(WIDTHS)("suppressing a list shows its effect before the button, %d px wide", async (width) => {
    const operator = await signedIn(width);
    const { page } = operator;
    await page.goto(`${service.url}/people/import`);
    const button = page.getByRole("button", { name: "Suppress all people of the file for good" });
    expect(await button.isVisible()).toBe(false);
    await operator.unfold("Suppress all people of a file…");
    await operator.sees("The people in the file never get a message again");
    const color = await button.evaluate((element) => getComputedStyle(element).backgroundColor);
    const importing = await page
      .getByRole("button", { name: "Preview" })
      .evaluate((element) => getComputedStyle(element).backgroundColor);
    expect(color).not.toBe(importing);
    const buffer = Buffer.from(`username\nlisted_${width}\n`);
    await page.setInputFiles("dialog[open] input[type=file]", { name: "list.csv", mimeType: "text/csv", buffer });
    await operator.press("Suppress all people of the file for good");
    await operator.sees("1 added, 0 suppressed before, 0 refused.");
    await leave(operator);
  });
});
