// These tests operate pages in a browser.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { OPT_OUT_WORDS } from "../../src/http/features/opt-out-page-translations.ts";
import { addPeople } from "../faults/add-people-and-count-messages.ts";
import { overhangOf, violationsInSchemes } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { authorize, BEARER, exported, openInstallation } from "../harness/process.ts";

/** Folder for pictures of the pages; none are taken without it. */
const PICTURES = process.env["PICTURES"];

describe.skipIf(!hasBrowser)("the page to opt out in a browser", () => {
  test("reads well in each language on the smallest phone, and does what its buttons say", async () => {
    await using world = await openInstallation();
    Object.assign(world.env, { PUBLIC_URL: "http://localhost:0", MESSAGE_TEMPLATE: "Hi {{name}}: {{optout}}" });
    await addPeople(world, 2);
    const service = await world.serve();
    await authorize(service, world.sandbox);
    await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
    const sent = (await exported(world)).filter(({ type }) => type === "DirectMessageAttempted");
    const [first, second] = sent.map(({ data }) => `${service.url}/o/${String(data["opt_out_code"])}`);
    const granted = await world.command("recipients", "consent", "@person_1", "--tracking", "granted");
    expect(granted.code).toBe(0);
    const browser = await launchBrowser();
    const requests: string[] = [];
    try {
      for (const [language, words] of Object.entries(OPT_OUT_WORDS)) {
        const person = await browser.newContext({
          locale: language,
          viewport: { width: 320, height: 700 },
          javaScriptEnabled: true,
        });
        const page = await person.newPage();
        page.on("request", (request) => requests.push(request.url()));
        await page.goto(first!);
        expect(await page.locator("html").getAttribute("lang")).toBe(language);
        expect(await page.locator("button").allTextContents()).toEqual([words.stop, words.untrack]);
        expect([language, await overhangOf(page), await violationsInSchemes(page)]).toEqual([language, 0, []]);
        await picture(page, `${language}-320`);
        await page.goto(`${service.url}/o/123456789ABCD`);
        expect([language, await overhangOf(page), await violationsInSchemes(page)]).toEqual([language, 0, []]);
        await picture(page, `${language}-unknown`);
        await person.close();
      }
      const person = await browser.newContext({
        javaScriptEnabled: false,
        viewport: { width: 390, height: 844 },
        colorScheme: "dark",
      });
      const page = await person.newPage();
      await page.goto(first!);
      await picture(page, "dark-390");
      await page.getByRole("button", { name: "Do not record my clicks" }).click();
      expect(await page.locator("h1").textContent()).toBe("Done. We no longer record your clicks.");
      await page.goto(second!);
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      expect(await page.locator("h1").textContent()).toBe("Done. We will not write to you again.");
      await picture(page, "done-390");
      expect(await person.cookies()).toEqual([]);
      expect(
        [...new Set(requests)].every((url) => url.startsWith(`${service.url}/o/`) || url.startsWith("data:")),
      ).toBe(true);
    } finally {
      await browser.close();
    }
    const reasons = (await exported(world)).flatMap(({ data }) => [data["reason"], data["tracking_source"]]);
    expect(reasons.filter((one) => one === "opt_out_page")).toHaveLength(2);
  });
});

async function picture(page: { screenshot(options: object): Promise<unknown> }, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}
