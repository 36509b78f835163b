// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { revokeAll } from "../../sandbox/x/tokens.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { startDemo, type Demo } from "../harness/demo.ts";
import { countClicks, operatorOf, signInByRequest } from "../harness/browser-operator.ts";
import { authorize, BEARER, openInstallation, TOKEN } from "../harness/process.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const WIDTHS = [1_440, 390] as const;

// Clicks on pages of X are not counted.
describe.skipIf(!hasBrowser)("at most three clicks lead from the overview to the end of a task", () => {
  let browser: Browser;
  let files: ReturnType<typeof temporaryFolder>;
  let demo: Demo;

  beforeAll(async () => {
    browser = await launchBrowser();
    files = temporaryFolder();
    demo = await startDemo(files.path, ["--keep", files.path, "--busy"]);
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.[Symbol.asyncDispose]();
    files?.[Symbol.dispose]();
  });

  /** Opens the overview of a service, signed in with the token, and counts the clicks from there on. */
  async function openOverview(url: string, token: string, width: number) {
    const operator = await operatorOf(browser, "by mouse", { viewport: { width, height: 800 } });
    const { page } = operator;
    await signInByRequest(page, { url }, token);
    const readClicks = await countClicks(page);
    await page.goto(url);
    return { ...operator, readClicks };
  }

  const openDemo = (width: number) => openOverview(demo.url, /^token +(\S+)/m.exec(demo.printed)?.[1] ?? "", width);

  test.each(WIDTHS)("at %d px: which link was clicked most in the last days, and in which hour", async (width) => {
    const { page, follow, sees, readClicks, wrong } = await openDemo(width);
    await follow("Links clicked most in 3 days");
    await sees("The table counts the clicks of the chart's range.");
    const counts = await page.locator("tbody td.number:nth-child(2)").allInnerTexts();
    const people = counts.map((count) => Number.parseInt(count.replace(",", ""), 10));
    expect(people).toEqual(people.toSorted((one, other) => other - one));
    const first = page.locator("tbody th a").first();
    const name = await first.innerText();
    await Promise.all([page.waitForEvent("load"), first.click()]);
    await sees(page.getByRole("heading", { name, level: 1 }));
    await sees(/^Most clicks by people: /);
    await sees(/^Clicks per day, .* to /);
    expect([readClicks(), wrong]).toEqual([2, []]);
    await page.context().close();
  });

  test.each(WIDTHS)("at %d px: look at the console as of three days ago, and come back", async (width) => {
    const { page, openOver, follow, sees, readClicks, wrong } = await openDemo(width);
    await openOver(/Look at another moment/);
    await follow(/^Three days ago/);
    await sees(page.locator(".past-bar"));
    await follow(/^Back to now/);
    await sees("Today's quota");
    expect([readClicks(), wrong]).toEqual([3, []]);
    await page.context().close();
  });

  test.each(WIDTHS)("at %d px: start a run when X must be authorized again", async (width) => {
    await using installation = await openInstallation();
    const { sandbox } = installation;
    const file = installation.file("people.csv", "username,basis\nada_builds,opt_in\n");
    expect(await installation.command("recipients", "import", file)).toMatchObject({ code: 0 });
    const service = await installation.serve();
    await authorize(service, sandbox);
    await service.post("/social/run", { dry_run: true, limit: 5 }, { ...BEARER, prefer: "wait=300" });
    revokeAll(sandbox.x);
    expect((await service.get("/social/me", { headers: BEARER })).status).toBe(401);
    const { page, press, sees, readClicks, wrong } = await openOverview(service.url, TOKEN, width);
    const hint = page.locator("section", { has: page.locator("#run") }).getByRole("link", { name: "Authorize again" });
    await Promise.all([page.waitForEvent("load"), hint.click()]);
    const before = readClicks();
    await press("Authorize app");
    await page.waitForURL(`${service.url}/**`);
    const atX = readClicks() - before;
    await press("Start run");
    await sees("The run has started.");
    expect([readClicks() - atX, atX, wrong]).toEqual([2, 1, []]);
    await page.context().close();
  });
});
