// These tests operate pages in a browser.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator } from "playwright-core";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { isWhole } from "../harness/case-count.ts";
import { operatorOf, WAYS, type Operator } from "../harness/browser-operator.ts";
import { BEARER, openInstallation, TOKEN, type Installation, type Running } from "../harness/process.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

const TEMPLATE = "Hi {{name}}, a word about {{product}}: https://go.example/welcome";

const PEOPLE = `username,name,basis,product
ada_builds,Ada,opt_in,the analytics plan
grace_codes,Grace,dm_first,the compiler course
not a handle,Nemo,opt_in,the compiler course
linus_k,Linus,opt_in,the kernel workshop
mina_designs,Mina,maybe,the design kit
yuki_dev,Yuki,opt_in,the analytics plan
ben_noconsent,Ben,none,the sales guide
`;

/**
 * Ways in which an operator uses the console. A mouse with scripts is tried only with the fault tests, because
 * `actions.test.ts` uses each page so in every run.
 */
const TRIED = isWhole ? WAYS : WAYS.filter((way) => way !== "by mouse");

/**
 * The only browser of these tests. Each way to operate the console, such as by mouse, has a separate browser context,
 * and so separate cookies.
 */
let browser: Browser | undefined;
const openedBrowser = async (): Promise<Browser> => (browser ??= await launchBrowser());
afterAll(() => browser?.close());

// Each test continues where the previous one ended: one day of a newcomer who becomes an operator.
for (const way of TRIED) {
  describe.skipIf(!hasBrowser)(`an operator, ${way}`, () => {
    let installation: Installation;
    let service: Running;
    let operator: Operator;
    /** Position of the log's end after the import, before the first message. */
    let afterImport: number;

    beforeAll(async () => {
      installation = await openInstallation();
      service = await installation.serve({ MESSAGE_TEMPLATE: TEMPLATE });
      operator = await operatorOf(await openedBrowser(), way);
    });
    afterEach(() => expect(operator.wrong).toEqual([]));
    afterAll(async () => {
      await operator?.page.context().close();
      await installation?.[Symbol.asyncDispose]();
    });

    async function click(code: string): Promise<void> {
      const link = { domain: "go.example", short_code: code, original_url: "https://shop.example/" };
      const body = { ...link, event: "click", user_agent: FIREFOX };
      expect((await service.post("/api/tracking/event", body, BEARER)).status).toBe(202);
    }

    const goTo = (path: string) => operator.page.goto(service.url + path);
    const region = (name: string): Locator => operator.page.getByRole("region", { name });
    const channel = (name: string): Locator => region("Channels").getByRole("listitem").filter({ hasText: name });
    /** Returns the figure of sent messages on the overview. It is found only if it is `count`. */
    const sent = (count: number): Locator =>
      operator.page.getByLabel("All messages").filter({ hasText: new RegExp(`^Sent${count} all time\\d+ skipped`) });

    /** Returns the text of each row of the named table, without its head. */
    async function rowsOf(name: string): Promise<string[]> {
      const rows = await region(name).getByRole("row").allInnerTexts();
      return rows.slice(1).map((text) => text.replaceAll(/\s+/g, " "));
    }

    async function positionShown(): Promise<number> {
      return Number(await operator.page.locator("main").getAttribute("data-position"));
    }

    test("signs in and sees the remaining setup", async () => {
      await goTo("/");
      await operator.sees("Sign in with an API token");
      // The browser itself reports an answer of 401 as an error of the page.
      expect(operator.wrong.splice(0)).toEqual([expect.stringContaining("401")]);
      await operator.fill("Token", TOKEN);
      await operator.press("Sign in");
      await operator.sees(/Before a run can start: X account/);
      await operator.follow("What to set up");
      await operator.sees(operator.page.getByRole("heading", { name: "X account to do" }));
    });

    test("authorizes at X, and the open setup page marks the step done", async () => {
      const [done] = (await operator.page.getByText("steps are done").innerText()).split(" ");
      const other = await operator.openTab();
      await other.page.goto(`${service.url}/setup`);
      await other.follow("Authorize an X account");
      await other.press("Authorize app");
      await other.sees("Sends as @acme_team.");
      await operator.sees(`${Number(done) + 1} of `);
      await operator.unfold("Finished steps");
      await operator.sees(operator.page.getByRole("heading", { name: "X account done" }));
      await operator.sees("Messages are sent as @acme_team.");
      await other.page.close();
    });

    test("imports a file and sees the refused rows with reasons", async () => {
      await operator.follow("People");
      await operator.sees("No people yet.");
      await operator.importFile(installation.file("people.csv", PEOPLE));
      await operator.sees("5 added, 0 updated, 2 refused.");
      await operator.sees("Template fields: product.");
      expect(await rowsOf("Refused rows")).toEqual([
        "line 4 not a handle username is neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
        'line 6 maybe basis must be dm_first, opt_in or none; got "maybe"',
      ]);
      await operator.follow("All people");
      await operator.sees("5 of 5 people.");
      afterImport = await positionShown();
    });

    test("makes a dry run and sees the recipients, texts and cost", async () => {
      await operator.follow("Overview");
      await operator.press("Dry run");
      await operator.sees("4 people would get a message");
      await operator.sees("1 would be skipped.");
      await operator.sees(/^A run now costs at most \$\d+\.\d\d, plus new replies$/);
      const words = (name: string, product: string) =>
        `Hi ${name}, a word about ${product}: https://go.example/welcome`;
      expect(await rowsOf("Table of messages")).toEqual([
        `@ada_builds (Ada) A ${words("Ada", "the analytics plan")}`,
        `@grace_codes (Grace) A ${words("Grace", "the compiler course")}`,
        `@linus_k (Linus) A ${words("Linus", "the kernel workshop")}`,
        `@yuki_dev (Yuki) A ${words("Yuki", "the analytics plan")}`,
      ]);
      await operator.sees("@ben_noconsent");
    });

    test("starts a run and sees its progress and end", async () => {
      const { x, faults } = installation.sandbox;
      const linus = [...x.people.values()].find(({ username }) => username === "linus_k");
      // X delays the run's third message, so that the page can show the run after two messages.
      faults.add({ network: "x", kind: "429", retryAfter: 1, path: `/${linus?.id}/messages` });
      await operator.unfold("Start run…");
      await operator.press("Start run");
      await operator.sees("The run has started.");
      await operator.sees(operator.page.getByRole("heading", { name: "Run in progress" }));
      await operator.sees("2 sent, of at most");
      expect(await operator.page.getByRole("progressbar").getAttribute("value")).toBe("2");
      faults.clear();
      await operator.sees("4 sent by the last one");
      await operator.sees(operator.page.getByRole("heading", { name: "No run in progress" }));
      expect(x.messages.total).toBe(4);
    });

    test("sees a new click on the open overview and the open links", async () => {
      const clicks = operator.page.getByRole("figure").filter({ hasText: "Clicks per hour" });
      expect(await clicks.getByRole("listitem").allInnerTexts()).toEqual(["people 0", "suspected 0", "bots 0"]);
      await click("spring");
      await operator.sees(clicks.getByRole("listitem").filter({ hasText: "people 1" }));
      await operator.sees(region("Newest events").getByText("go.example/spring").first());
      await operator.follow("Links");
      await operator.sees("1 click by people, 0 suspected to be X itself");
      await click("summer");
      await operator.sees("2 clicks by people, 0 suspected to be X itself");
      await operator.sees(operator.page.getByRole("link", { name: "go.example/summer" }));
    });

    test("sees a suspended chat and resumes it by a button", async () => {
      const slack = await operator.openTab();
      await slack.page.goto(`${installation.sandbox.url}/networks/slack`);
      await slack.press("Chat closed to us", "switch");
      await slack.sees(/^on$/);
      await operator.follow("Overview");
      await click("autumn");
      await operator.sees(region("Needs attention").getByText("Chat is suspended"));
      expect(await region("Needs attention").innerText()).toContain("channel_is_archived");
      await operator.follow("Deliveries");
      await operator.sees(region("Chat").getByText("Suspended", { exact: true }));

      await slack.press("Chat closed to us", "switch");
      await slack.page.close();
      await operator.press("Resume Chat");
      await operator.sees(region("Chat").getByText("up to date"));
      expect((await region("Chat").innerText()).toLowerCase()).not.toContain("suspended");
      await operator.follow("Overview");
      await operator.sees(channel("Chat").getByText("up to date"));
      expect(await region("Needs attention").count()).toBe(0);
    });

    test("retries all dead letters of one of two causes", async () => {
      installation.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
      const notify = (message: string) => service.post("/api/notify", { message }, BEARER);
      // Slack refuses the first message and so suspends the channel; the second fails without a request.
      for (const message of ["first", "second"]) expect((await notify(message)).status).toBe(502);
      await operator.sees(operator.page.getByRole("link", { name: "Deliveries 2 dead letters", exact: true }));
      await operator.follow("Deliveries 2 dead letters");
      await operator.press("Resume Chat");
      const cause = operator.page.locator(".cause").filter({ hasText: "No request was possible" });
      await operator.sees(cause);
      if (way === "by mouse, without script") {
        await operator.press(cause.getByRole("button", { name: "Retry…" }));
        await operator.sees("Nothing was ticked.");
      }
      await operator.unfold("Retry 1…");
      await operator.sees(operator.page.getByRole("heading", { name: "Retry 1 dispatch to Chat?" }));
      await operator.press("Retry 1");
      await operator.sees("1 dispatch was retried.");
      expect(await operator.page.locator(".cause").count()).toBe(1);
      await operator.follow("Deliveries 1 dead letter");
    });

    test("finds a recipient, reads their history, suppresses and forgets them", async () => {
      await operator.follow("People");
      await operator.fill("Search", "grace");
      // With script, the page applies the filter as soon as the field loses the focus. Without script, the operator
      // presses a button.
      await (way === "by mouse, without script" ? operator.press("Show") : operator.page.keyboard.press("Tab"));
      await operator.sees("1 of 5 people.");
      await operator.follow("@grace_codes (Grace)");
      await operator.sees("Hi Grace, a word about the compiler course: https://go.example/welcome");
      await operator.sees(region("What happened").getByText("Sent to @grace_codes"));
      expect(await region("What happened").getByRole("listitem").count()).toBeGreaterThan(2);

      await operator.unfold("Suppress");
      await operator.sees("@grace_codes never gets a message again");
      await operator.press("Suppress @grace_codes");
      await operator.sees(operator.page.getByRole("heading", { level: 1 }).getByText("Suppressed", { exact: true }));
      expect(await operator.page.getByText("Suppress", { exact: true }).count()).toBe(0);

      await operator.unfold("Forget");
      await operator.sees("This cannot be undone.");
      await operator.fill("Type @grace_codes to confirm", "@grace_codes");
      await operator.press("Forget @grace_codes for ever");
      await operator.sees(operator.page.getByRole("heading", { name: "Erased or hashed" }));
      await operator.sees("The log does not say who they are, and no run contacts them.");
      await operator.follow("Activity");
      expect(await operator.page.getByText("grace").count()).toBe(0);
      expect(await operator.page.getByText("erased").count()).toBeGreaterThan(0);
    });

    test("looks at earlier moments, with their numbers and without actions, and returns", async () => {
      await operator.follow("Overview");
      await operator.sees(sent(4));
      const slider = operator.page.getByRole("slider");
      const isScripted = way !== "by mouse, without script";
      const past = operator.page.locator(".past-bar");
      await operator.openOver(/Look at another moment/);
      if (isScripted) await operator.slideToStart(slider);
      else {
        await operator.fill("Moment", "1 January 2020");
        await operator.press("Go");
      }
      await operator.sees(past);
      await operator.sees(sent(0));
      await operator.follow("People");
      await operator.sees(past);
      await operator.sees("No people yet.");

      await goTo(`/people?as_of=${afterImport}`);
      await operator.sees(`at position ${afterImport}`);
      // The erased recipient is missing in this past state too, although they were imported before that moment.
      await operator.sees("4 of 4 people.");
      expect(await region("People").getByText("not contacted yet").count()).toBe(4);
      await operator.follow("Overview");
      await operator.sees(sent(0));
      expect(await operator.page.locator("form[method=post]").count()).toBe(0);
      await operator.follow("Back to now");
      await operator.sees(sent(4));
      await operator.sees(operator.page.getByRole("button", { name: "Dry run" }));
    });

    test("writes to one recipient now, once they have consented", async () => {
      await goTo("/people/@ben_noconsent");
      await operator.unfold("Write now");
      await operator.press("Write to @ben_noconsent");
      await operator.sees("The run will not write to them: no consent.");
      const body = { recipient: "@ben_noconsent", basis: "opt_in" };
      expect((await service.post("/social/recipients/consent", body, BEARER)).status).toBe(200);
      await goTo("/people/@ben_noconsent");
      await operator.unfold("Write now");
      await operator.press("Write to @ben_noconsent");
      await operator.sees(/A run for them has started|They come next in the run in progress/);
      await operator.sees("Hi Ben, a word about the sales guide: https://go.example/welcome");
      await operator.sees(region("What happened").getByText("Sent to @ben_noconsent"));
      expect(await operator.page.getByText("Write now", { exact: true }).count()).toBe(0);
    });

    test("verifies the log and sees that it is whole", async () => {
      await operator.follow("Activity");
      await operator.sees("The log was not verified yet.");
      const head = await positionShown();
      await operator.press("Check the log");
      await operator.sees(region("Proof").getByText("Whole", { exact: true }));
      expect(await region("Proof").innerText()).toContain("by tester");
      expect(Number(/whole up to position (\d+)/i.exec(await region("Proof").innerText())?.[1])).toBeGreaterThanOrEqual(
        head,
      );
      await operator.sees(operator.page.getByRole("link", { name: /^Log intact, checked / }));
    });
  });
}
