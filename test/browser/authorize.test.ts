// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { violationsOf } from "../harness/accessibility.ts";
import { hasBrowser, openBrowser } from "../harness/browser.ts";
import { openInstallation, TOKEN, type Running, type Installation } from "../harness/process.ts";

describe.skipIf(!hasBrowser)("a browser", () => {
  let world: Installation;
  let service: Running;
  let browser: BrowserContext;
  let page: Page;
  /** Waits for a text: a click resolves before the next page is read to its end. */
  const sees = (text: string): Promise<void> => page.locator("main").getByText(text).first().waitFor();

  beforeAll(async () => {
    world = await openInstallation();
    // `localhost` is another name of this machine, which a browser takes for another site. So the consent page is on
    // another site than the service, as X's is.
    const authorizeUrl = world.env["X_AUTHORIZE_URL"]!;
    expect(authorizeUrl).toContain("127.0.0.1");
    world.env["X_AUTHORIZE_URL"] = authorizeUrl.replace("127.0.0.1", "localhost");
    service = await world.serve();
    browser = await openBrowser();
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  test("cancels on the consent page, nothing is stored, and a link leads to another attempt", async () => {
    await page.goto(`${service.url}/social/auth`);
    await sees("wants to access your X account");
    await page.click("text=Cancel");
    await sees("You cancelled at X. Nothing was stored.");
    expect(await violationsOf(page)).toEqual([]);
    await page.click("text=Authorize again");
    await sees("wants to access your X account");
    expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: false });
  });

  test("authorizes, is redirected to the console, signs in and shows the account", async () => {
    await page.goto(`${service.url}/social/auth`);
    await page.click("text=Authorize app");
    await page.waitForURL(`${service.url}/`);
    expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: true });

    await page.fill("input[name=token]", "not-a-token-of-this-service");
    await page.click("button");
    await sees("not a token");
    await page.fill("input[name=token]", TOKEN);
    await page.click("button");
    await sees("Sends as @acme_team");
    await sees("signed in to X as @acme_team");
    await page.reload();
    await sees("Sends as @acme_team");
    const session = (await browser.cookies()).find(({ name }) => name.startsWith("reachlog_session"));
    expect(session).toMatchObject({ httpOnly: true, sameSite: "Lax" });
  });

  test("stays signed in after the redirect from X, and after a link from another site", async () => {
    await page.goto(`${service.url}/social/auth`);
    await page.click("text=Authorize app");
    await page.waitForURL(`${service.url}/`);
    await sees("Sends as @acme_team");
    await page.goto(world.sandbox.url.replace("127.0.0.1", "localhost"));
    await page.setContent(`<a href="${service.url}/people?status=sent">open</a>`);
    await page.click("text=open");
    expect(await page.title()).toContain("People");
  });

  test("signs in at a link and is redirected to its page", async () => {
    await browser.clearCookies();
    await page.goto(`${service.url}/people?status=sent`);
    await page.fill("input[name=token]", ` ${TOKEN} `);
    await page.click("button");
    await page.waitForURL(`${service.url}/people?status=sent`);
    expect(await page.title()).toContain("People");
  });

  test("is not signed in by a form on another site", async () => {
    await browser.clearCookies();
    const foreign = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response(
          `<form method="post" action="${service.url}/session"><input name="token" value="${TOKEN}"><button>Win</button></form>`,
          { headers: { "content-type": "text/html", "referrer-policy": "no-referrer" } },
        ),
    });
    // `localhost` is another name of this machine, which a browser takes for another site.
    await page.goto(`http://localhost:${foreign.port}/`);
    await page.click("button");
    await sees("A page of another site may not do this.");
    expect((await browser.cookies()).filter(({ name }) => name.startsWith("reachlog_session"))).toEqual([]);
    await foreign.stop(true);
  });

  test("shows received messages on the sandbox's page as text", async () => {
    await service.post("/api/notify", { message: "<script>document.title='owned'</script>" });
    await page.goto(world.sandbox.url);
    await sees("document.title='owned'");
    expect(await page.title()).toBe("reachlog sandbox");
  });
});
