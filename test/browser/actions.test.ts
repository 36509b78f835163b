// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import type { EventType } from "../../events/event-types-and-codec.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { documentedPath } from "../fuzz/parse-openapi-operations.ts";
import { overhangOf, violationsOf } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { isWhole } from "../harness/case-count.ts";
import { countClicks, operatorOf, signInByRequest, type Operator } from "../harness/browser-operator.ts";
import {
  authorize,
  BEARER,
  openInstallation,
  TOKEN,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/** Screen widths of a phone and, with the fault tests, of a desktop, which `journey.test.ts` uses in every run. */
const WIDTHS = isWhole ? [390, 1_440] : [390];

/**
 * An operator with a screen of this width. Every action is tested at each width, so data that it uses up exists once
 * for each, with the width in its name.
 */
interface Seat {
  readonly operator: Operator;
  readonly width: number;
}

interface Action {
  /**
   * Path of the console page that the test case opens, as the OpenAPI document spells it, with parameters in braces. A
   * test checks that the cases cover every page.
   */
  readonly page: string;
  readonly does: string;
  readonly address: string | ((seat: Seat) => string);
  /** Prepares the service for the action, before the operator opens the page. */
  readonly given?: (seat: Seat) => Promise<unknown>;
  readonly act: (seat: Seat) => Promise<void>;
  /** Text that the page shows after the action. */
  readonly sees: string | RegExp | ((seat: Seat) => string | RegExp);
  /** Event that the action appends to the log. Its caller is the operator. */
  readonly logs?: readonly [type: EventType, data: object | ((seat: Seat) => object)];
}

describe.skipIf(!hasBrowser)("the main actions of each page", () => {
  let installation: Installation;
  let service: Running;
  let browser: Browser;
  const seats = new Map<number, Operator>();

  beforeAll(async () => {
    installation = await openInstallation();
    const { people } = installation.sandbox.x;
    const late = [...people.values()].find(({ username }) => username === "late_lena")!;
    for (const width of WIDTHS) people.set(`77${width}`, { ...late, id: `77${width}`, username: `late_${width}` });
    await take(["ada_builds,opt_in,", ...WIDTHS.map((width) => `late_${width},opt_in,`)]);
    service = await installation.serve();
    await authorize(service, installation.sandbox);
    await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
    const each = (name: string) => WIDTHS.map((width) => `${name}_${width},none,`);
    await take(["yuki_dev,opt_in,", "one,none,1", ...each("forget"), ...each("quiet")]);
    for (const code of ["a", "b", "b"]) await click(code);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await installation?.[Symbol.asyncDispose]();
  });

  async function take(rows: readonly string[]): Promise<void> {
    const file = installation.file("people.csv", `username,basis,id\n${rows.join("\n")}\n`);
    expect(await installation.command("recipients", "import", file)).toMatchObject({ code: 0 });
  }

  async function click(short_code: string, ip = "203.0.113.9"): Promise<void> {
    const link = { domain: "go.example", original_url: "https://example.com/", short_code };
    const body = { event: "click", user_agent: FIREFOX, ip, ...link };
    expect((await service.post("/api/tracking/event", body, BEARER)).status).toBe(202);
  }

  /**
   * Adds dead letters of the chat channel. Slack refuses the first message, which suspends the channel; the others then
   * fail without a request.
   */
  async function closeChat(letters: number): Promise<void> {
    installation.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
    for (let letter = 0; letter < letters; letter++) await service.post("/api/notify", { message: "hello" }, BEARER);
  }

  /** Sends a message whose outcome stays in doubt: Slack accepts it, but its answer is lost. */
  async function leaveInDoubt(): Promise<void> {
    installation.sandbox.faults.add({ network: "slack", kind: "reset_after_delivery", count: 1 });
    await service.post("/api/notify", { message: "hello" }, BEARER);
  }

  /** Makes X answer 429 to every message, so a run continues until an operator stops it. */
  async function holdRuns(): Promise<void> {
    installation.sandbox.faults.add({ network: "x", kind: "429", retryAfter: 600, path: "/messages" });
  }

  const confirm = async ({ page, press, unfold, sees }: Operator, label: string, button: string): Promise<void> => {
    await unfold(label);
    await sees(page.getByRole("button", { name: button, exact: true }));
    await press(button);
  };

  const ACTIONS: readonly Action[] = [
    {
      page: "/",
      does: "sign in",
      address: "/",
      act: async ({ operator }) => {
        // The browser itself reports an answer of 401 as an error of the page.
        expect(operator.wrong.splice(0)).toEqual([expect.stringContaining("401")]);
        await operator.fill("Token", TOKEN);
        await operator.press("Sign in");
      },
      sees: "Newest events",
    },
    {
      page: "/",
      does: "search",
      address: "/links",
      act: async ({ operator: { page, fill } }) => {
        await page.keyboard.press("/");
        await fill(
          "Why did @… get a message? A name, a link, a run, a template, an event or a position",
          "Why @ada_builds?",
        );
        await Promise.all([page.waitForEvent("load"), page.keyboard.press("Enter")]);
      },
      sees: "Why did @ada_builds get a message?",
    },
    {
      page: "/find",
      does: "choose one of several matches",
      address: "/find?q=1",
      act: ({ operator }) => operator.follow(/^@one\b/),
      sees: "Why did @one get no message?",
    },
    {
      page: "/",
      does: "suppress a recipient by three clicks, from the suggestions of the search",
      address: "/",
      act: async ({ operator: { page, press }, width }) => {
        await page.getByRole("combobox").click();
        await page.keyboard.type(`suppress @quiet_${width}`);
        await page.getByRole("option", { name: `Suppress @quiet_${width}` }).click();
        await press(`Suppress @quiet_${width}`);
      },
      sees: "Suppressed",
      logs: ["RecipientSuppressed", ({ width }) => ({ recipient: { username: `quiet_${width}` } })],
    },
    {
      page: "/",
      does: "choose the range of the charts",
      address: "/",
      act: ({ operator }) => operator.followInPlace("7 d"),
      sees: "Messages per day, last 7 days",
    },
    {
      page: "/",
      does: "look at an earlier moment and come back",
      address: "/",
      act: async ({ operator }) => {
        await operator.openOver(/Look at another moment/);
        await operator.slideToStart(operator.page.getByRole("slider"));
        await operator.sees(operator.page.locator(".past-bar"));
        expect(await operator.page.locator("form[method=post]").count()).toBe(0);
        await operator.follow("Back to now");
      },
      sees: "Today's quota",
    },
    {
      page: "/",
      does: "make a dry run",
      address: "/",
      act: ({ operator }) => operator.press("Dry run"),
      sees: "1 person would get a message",
      logs: ["DryRunFinished", { would_send: 1 }],
    },
    {
      page: "/runs/dry/{run_id}",
      does: "start a run",
      address: "/",
      given: holdRuns,
      act: async ({ operator }) => {
        await operator.press("Dry run");
        const [start, dry] = [
          operator.page.getByRole("button", { name: "Start run…" }),
          operator.page.getByRole("button", { name: "Dry run", exact: true }),
        ];
        // The two buttons stand side by side, also on a phone.
        expect((await start.boundingBox())?.y).toBe((await dry.boundingBox())!.y);
        await confirm(operator, "Start run…", "Start run");
      },
      sees: "The run has started.",
      logs: ["RunStarted", { dry_run: false }],
    },
    {
      page: "/",
      does: "stop a run",
      address: "/",
      act: ({ operator }) => confirm(operator, "Stop run", "Stop run"),
      sees: "No run in progress",
      logs: ["RunStopRequested", {}],
    },
    {
      page: "/runs",
      does: "open a run",
      address: "/runs",
      given: async () => installation.sandbox.faults.clear(),
      act: ({ operator }) => operator.follow("Run 1"),
      sees: "About this run",
    },
    {
      page: "/runs/{run_id}",
      does: "filter its recipients by their outcome",
      address: "/runs",
      act: async ({ operator }) => {
        await operator.follow("Run 1");
        await operator.open(".tabs li:last-child a");
      },
      sees: "No recipient has this outcome.",
    },
    {
      page: "/people",
      does: "search",
      address: "/people",
      act: async ({ operator, width }) => {
        if (width < 500) await operator.unfold("Filter");
        await operator.fill("Search", "ada");
        await operator.page.keyboard.press("Enter");
      },
      sees: /^1 of \d+ people\.$/,
    },
    {
      page: "/people/import",
      does: "import a file",
      address: "/people",
      act: async ({ operator, width }) => {
        await operator.importFile(installation.file("new.csv", `username\nnew_${width}\nnot a handle\n`));
      },
      sees: "1 added, 0 updated, 1 refused.",
      logs: ["RecipientAdded", ({ width }) => ({ recipient: { username: `new_${width}` } })],
    },
    {
      page: "/people/{id}",
      does: "allow a retry",
      address: ({ width }) => `/people/@late_${width}`,
      act: ({ operator, width }) => confirm(operator, "Retry", `Retry @late_${width}`),
      sees: "not contacted yet",
      logs: ["RecipientRetryAllowed", ({ width }) => ({ recipient: { id: `77${width}` } })],
    },
    {
      page: "/people/{id}",
      does: "record consent",
      address: ({ width }) => `/people/@late_${width}`,
      act: async ({ operator, width }) => {
        await operator.unfold("Record consent");
        await operator.page.locator("select[name=tracking]").selectOption("denied");
        await operator.page.locator("input[name=tracking_source]").fill("mail");
        await operator.press(`Record consent of @late_${width}`);
      },
      sees: "Opted in; tracking denied by mail.",
      logs: ["ConsentRecorded", { tracking: "denied", tracking_source: "mail" }],
    },
    {
      page: "/people/{id}",
      does: "suppress a recipient",
      address: ({ width }) => `/people/@late_${width}`,
      act: ({ operator, width }) => confirm(operator, "Suppress", `Suppress @late_${width}`),
      sees: "The recipient never gets a message again.",
      logs: ["RecipientSuppressed", ({ width }) => ({ recipient: { id: `77${width}` } })],
    },
    {
      page: "/people/{id}",
      does: "erase a recipient after the name is typed",
      address: ({ width }) => `/people/@forget_${width}`,
      act: async ({ operator, width }) => {
        const name = `@forget_${width}`;
        await operator.unfold("Forget");
        await operator.fill(`Type ${name} to confirm`, "@forget");
        await operator.page.keyboard.press("Enter");
        expect(await operator.page.locator("input[name=confirm]:invalid").count()).toBe(1);
        await operator.fill(`Type ${name} to confirm`, `_${width}`);
        await operator.press(`Forget ${name} for ever`);
      },
      sees: "Erased or hashed",
      logs: ["PersonForgotten", {}],
    },
    {
      page: "/campaigns",
      does: "create a campaign",
      address: "/campaigns",
      act: async ({ operator, width }) => {
        await operator.unfold("New campaign…");
        await operator.page.keyboard.type("default");
        expect(await operator.page.locator("dialog[open]").evaluate(({ scrollTop }) => scrollTop)).toBe(0);
        await operator.fill("Message", "Hi {{name|there}}\nStill on?");
        const { page } = operator;
        expect(await page.getByLabel("Since then they").isVisible()).toBe(false);
        await page.getByLabel("Got a message of").selectOption("default");
        await page.getByLabel("Since then they").selectOption("did not reply");
        await operator.sees(page.locator("dialog[open] output", { hasText: /^\d+ of \d+ may get a message now\./ }));
        await operator.press("Create campaign");
        // The name is taken, and the form keeps what was typed.
        await operator.sees(page.locator("dialog[open] [role=alert]"));
        expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("Hi {{name|there}}\nStill on?");
        expect(await page.getByLabel("Got a message of").inputValue()).toBe("default");
        await page.getByLabel("Name", { exact: true }).fill(`spring-${width}`);
        await operator.press("Create campaign");
      },
      sees: ({ width }) =>
        `The campaign spring-${width} was created, for recipients who got a message of default and did not reply.`,
      logs: [
        "CampaignCreated",
        ({ width }) => ({
          name: `spring-${width}`,
          text: "Hi {{name|there}}\nStill on?",
          audience: { messaged: "default" },
        }),
      ],
    },
    {
      page: "/campaigns/{name}",
      does: "end a campaign",
      address: ({ width }) => `/campaigns/spring-${width}`,
      act: ({ operator }) => confirm(operator, "End campaign", "End campaign"),
      sees: ({ width }) => `The campaign spring-${width} has ended.`,
      logs: ["CampaignEnded", ({ width }) => ({ name: `spring-${width}` })],
    },
    {
      page: "/links",
      does: "sort by a column",
      address: "/links",
      act: async ({ operator }) => {
        await operator.followInPlace("bots");
        await operator.sees(operator.page.locator("th[aria-sort=descending]", { hasText: "bots" }));
      },
      sees: "go.example/b",
    },
    {
      page: "/links",
      does: "erase the clicks of an address",
      address: "/links",
      given: ({ width }) => click("a", `203.0.113.${width % 100}`),
      act: async ({ operator, width }) => {
        await operator.unfold("Erase the clicks of an address");
        await operator.fill("IP address", `203.0.113.${width % 100}`);
        await operator.press("Erase its clicks for ever");
      },
      sees: "go.example/a",
      logs: ["PersonForgotten", {}],
    },
    {
      page: "/links/{domain}/{short_code}",
      does: "choose the hours of a day",
      address: "/links/go.example/b",
      act: ({ operator }) => operator.followInPlace("24 h"),
      sees: "Clicks per hour, last 24 hours",
    },
    {
      page: "/links/{domain}/{short_code}",
      does: "read all events of the link",
      address: "/links/go.example/b",
      act: ({ operator }) => operator.follow("All events of this link"),
      sees: "All that happened, in order. Nothing is ever changed.",
    },
    {
      page: "/",
      does: "resume a suspended channel",
      address: "/",
      given: () => closeChat(1),
      act: ({ operator }) => operator.press("Resume Chat"),
      sees: "chat is resumed.",
      logs: ["ChannelResumed", { channel: "chat" }],
    },
    {
      page: "/deliveries",
      does: "resume a suspended channel",
      address: "/deliveries",
      given: () => closeChat(2),
      act: ({ operator }) => operator.press("Resume Chat"),
      sees: "chat is resumed.",
      logs: ["ChannelResumed", { channel: "chat" }],
    },
    {
      page: "/deliveries",
      does: "retry a dead letter",
      address: "/deliveries",
      act: async ({ operator }) => {
        await operator.page.locator("input[name=source]").first().check();
        await operator.press("Retry…");
        await operator.press("Retry 1");
      },
      sees: "1 dispatch was retried.",
      logs: ["DispatchRetryRequested", { channel: "chat" }],
    },
    {
      page: "/deliveries",
      does: "discard a dead letter with a reason",
      address: "/deliveries",
      act: async ({ operator }) => {
        await operator.page.locator("input[name=source]").first().check();
        await operator.press("Discard…");
        await operator.fill("Reason", "over");
        await operator.press("Discard 1");
      },
      sees: "1 dispatch was discarded.",
      logs: ["DispatchDiscarded", { channel: "chat", why: "over" }],
    },
    {
      page: "/deliveries/decide",
      does: "retry all dead letters of a cause",
      address: "/deliveries?channel=chat",
      act: async ({ operator }) => {
        await operator.page.getByLabel("All 1").check();
        await operator.press("Retry…");
        await operator.sees("Retry 1 dead letter of Chat?");
        await operator.press("Retry 1");
      },
      sees: "1 dispatch was retried.",
      logs: ["DispatchRetryRequested", { channel: "chat" }],
    },
    {
      page: "/deliveries",
      does: "answer that a dispatch in doubt arrived",
      address: "/deliveries?status=in_doubt",
      given: leaveInDoubt,
      act: async ({ operator }) => {
        const record = operator.page.getByRole("button", { name: "Record decisions" });
        const reason = operator.page.getByText("Choose a decision first.");
        expect([await record.getAttribute("aria-disabled"), await reason.isVisible()]).toEqual(["true", true]);
        await operator.page.getByLabel("It arrived").check();
        expect([await record.getAttribute("aria-disabled"), await reason.isVisible()]).toEqual([null, false]);
        await operator.fill("Reason for all", "seen");
        await operator.press("Record decisions");
      },
      sees: "1 decision recorded: 1 arrived, 0 left, 0 sent again.",
      logs: ["DispatchSettled", { channel: "chat", as: "arrived", why: "seen" }],
    },
    {
      page: "/attention",
      does: "leave a dispatch in doubt as unknown",
      address: "/attention",
      given: leaveInDoubt,
      act: async ({ operator }) => {
        await operator.unfold("Leave it…");
        await operator.page.keyboard.type("old");
        const title = operator.page.locator("dialog[open] h2");
        expect(await title.evaluate((head) => getComputedStyle(head).textAlign)).toBe("start");
        await operator.press("Leave it");
      },
      sees: /^Left 1 dispatch to Chat as unknown$/,
      logs: ["DispatchSettled", { channel: "chat", as: "left", why: "old" }],
    },
    {
      page: "/activity",
      does: "filter by type and open an event",
      address: "/activity",
      act: async ({ operator }) => {
        await operator.unfold("Filter");
        await operator.page.locator("select[name=type]").selectOption("RunStarted");
        await operator.sees(operator.page.locator(".chips").getByText("Run started"));
        await operator.open(".line .t a");
      },
      sees: /^Run started at position/,
    },
    {
      page: "/activity",
      does: "verify the log",
      address: "/activity",
      act: ({ operator }) => operator.press("Check the log"),
      sees: /^Whole$/i,
      logs: ["LogVerified", { result: "whole" }],
    },
    {
      page: "/activity",
      does: "export the filtered events",
      address: "/activity?type=LinkClicked",
      act: async ({ operator: { page } }) => {
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("JSON Lines").click()]);
        const lines = (await Bun.file(await download.path()).text()).trimEnd().split("\n");
        expect(lines.length).toBeGreaterThan(2);
        expect(lines.filter((line) => !line.includes('"type":"LinkClicked"'))).toEqual([]);
      },
      sees: "Export all matches:",
    },
    {
      page: "/activity/{position}",
      does: "open the next event",
      address: "/activity/1",
      act: ({ operator }) => operator.follow("Next"),
      sees: "at position 2",
    },
    {
      page: "/results",
      does: "compare by another property",
      address: "/results",
      act: async ({ operator }) => void (await operator.page.locator("select[name=by]").selectOption("day")),
      sees: "By day",
    },
    {
      page: "/what-if",
      does: "compare other rules",
      address: "/what-if",
      act: async ({ operator }) => {
        await operator.fill("Messages a day", "5");
        await operator.press("Compare");
      },
      sees: "The event that records this question",
      logs: ["WhatIfAsked", {}],
    },
    {
      page: "/setup",
      does: "test the channels",
      address: "/setup",
      act: ({ operator }) => operator.press("Test channels"),
      sees: /chat: delivered/,
      logs: ["ChannelTestRequested", {}],
    },
    {
      page: "/docs",
      does: "open an operation",
      address: "/docs",
      act: ({ operator }) => operator.open("#resumeDeliveries summary"),
      sees: "A running service sends pending dispatches at once, and suspends the channel again if the network still refuses it.",
    },
    {
      page: "/social/auth",
      does: "authorize again",
      address: "/social/auth",
      act: ({ operator }) => operator.press("Authorize app"),
      sees: "Sends as @acme_team.",
      logs: ["AccountAuthorized", { user: { username: "acme_team" } }],
    },
    {
      page: "/networks/{network}",
      does: "switch on a fault of the sandbox",
      address: () => `${installation.sandbox.url}/networks/slack`,
      act: ({ operator }) => operator.press("Chat closed to us", "switch"),
      sees: /^on$/,
    },
    {
      page: "/",
      does: "sign out",
      address: "/",
      act: async ({ operator }) => {
        await operator.openOver(/^Signed in as/);
        await operator.press("Sign out");
        expect(operator.wrong.splice(0)).toEqual([expect.stringContaining("401")]);
      },
      sees: "Sign in with an API token",
    },
  ];

  const at = <Value>(value: Value | ((seat: Seat) => Value), seat: Seat): Value =>
    typeof value === "function" ? (value as (seat: Seat) => Value)(seat) : value;

  /** Returns the position of the log's newest event: the second line of a signed head. */
  async function readHead(): Promise<number> {
    const head = await service.get("/api/audit/head", { headers: BEARER });
    return Number((await head.text()).split("\n")[1]);
  }

  async function readSince(position: number, type: EventType): Promise<readonly { data: object; meta: object }[]> {
    const found = await service.get(`/api/audit/export?type=${type}&from=${position + 1}`, { headers: BEARER });
    const lines = (await found.text()).split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line));
  }

  for (const width of WIDTHS) {
    test.each(ACTIONS.map((action) => [action.page, action.does, action] as const))(
      `at ${width} px %s lets the operator %s`,
      async (_page, _does, { address, given, act, sees, logs }) => {
        const viewport = { width, height: 800 };
        const operator = seats.get(width) ?? (await operatorOf(browser, "by mouse", { viewport }));
        seats.set(width, operator);
        const seat = { operator, width };
        await given?.(seat);
        const before = await readHead();
        const { page } = operator;
        await page.goto(new URL(at(address, seat), service.url).href);
        expect(await overhangOf(page)).toBe(0);
        await act(seat);
        await operator.sees(at<string | RegExp>(sees, seat));
        if (logs !== undefined) {
          const [type, data] = logs;
          const events = await until(
            () => readSince(before, type),
            (found) => found.length > 0,
          );
          expect(events.at(-1)).toMatchObject({ data: at(data, seat), meta: { caller: "tester" } });
        }
        expect([await overhangOf(page), operator.wrong]).toEqual([0, []]);
        // Checks the page with its unfolded parts. The page has the same elements at all widths, so it is checked at
        // one width only.
        if (width === 390) expect(await violationsOf(page)).toEqual([]);
      },
    );
  }

  test.each([1_440, 390])(
    "at %d px, at most three clicks lead from the overview to the answer that a message in doubt arrived",
    async (width) => {
      const { faults, x } = installation.sandbox;
      const [id, username] = [`66${width}`, `doubt_${width}`];
      const ada = [...x.people.values()].find((person) => person.username === "ada_builds")!;
      x.people.set(id, { ...ada, id, username });
      await take([`${username},opt_in,`]);
      // X accepts the next message but its answer is lost, and the run cannot read the conversation, so the message is
      // in doubt.
      faults.clear();
      faults.add({ network: "x", kind: "reset_after_delivery", path: "/messages", count: 1 });
      faults.add({ network: "x", kind: "500", path: "/dm_conversations/with/" });
      await service.post("/social/run", { recipients: [`@${username}`] }, { ...BEARER, prefer: "wait=300" });
      faults.clear();
      const before = await readHead();
      const operator = await operatorOf(browser, "by mouse", { viewport: { width, height: 800 } });
      const { page, fill, press, sees } = operator;
      await signInByRequest(page, service);
      const readClicks = await countClicks(page);
      await page.goto(service.url);
      const item = page.locator(".needs > li").filter({ hasText: `@${username}` });
      await item.getByText("It arrived…", { exact: true }).click();
      await fill("Reason", "seen at X");
      await press("It arrived");
      await sees("1 message counts as sent.");
      expect(readClicks()).toBeOneOf([1, 2, 3]);
      expect(await readSince(before, "DirectMessageSent")).toMatchObject([
        { data: { recipient: { username }, settled_by: "operator", why: "seen at X" } },
      ]);
      expect(operator.wrong).toEqual([]);
      await page.context().close();
    },
  );

  test.each([1_440, 390])(
    "at %d px, two clicks retry all dead letters of a cause, and none without a tick retries others",
    async (width) => {
      await closeChat(4);
      expect((await service.post("/api/deliveries/resume", { channel: "chat" }, BEARER)).status).toBe(200);
      const operator = await operatorOf(browser, "by mouse", { viewport: { width, height: 800 } });
      const { page, press, sees } = operator;
      await signInByRequest(page, service);
      const readClicks = await countClicks(page);
      await page.goto(new URL("/deliveries?error=no_request", service.url).href);
      const retryTicked = page.getByRole("button", { name: "Retry…" });
      const readReason = async () => [
        await retryTicked.getAttribute("aria-disabled"),
        await page.getByText("Tick a dead letter first.").isVisible(),
      ];
      expect(await readReason()).toEqual(["true", true]);
      await retryTicked.press("Enter");
      await page.locator("input[name=source]").first().check();
      expect(await readReason()).toEqual([null, false]);
      await page.locator("input[name=source]").first().uncheck();
      expect(await readReason()).toEqual(["true", true]);
      expect(page.url()).toContain("/deliveries?");
      expect(await violationsOf(page)).toEqual([]);
      const before = readClicks();
      await page.getByText("Retry 3…", { exact: true }).click();
      expect(await page.locator("dialog[open]").getByText("so retrying cannot create duplicates").count()).toBe(1);
      await press("Retry 3");
      await sees("3 dispatches were retried.");
      expect([readClicks() - before, await overhangOf(page), operator.wrong]).toEqual([2, 0, []]);
      await sees(page.locator(".tile", { hasText: "Chat" }).getByText("Up to date"));
      await page.context().close();
    },
  );

  test("every page of the console has an action", () => {
    const pages = describeEndpoints().filter(
      // Leaves out the opt-out page, which is not part of the console and has its own tests.
      ({ method, answers, path }) =>
        method === "GET" && answers[200]?.mediaType === "text/html" && !path.startsWith("/o/"),
    );
    expect(pages.length).toBeGreaterThan(10);
    const tried = new Set(ACTIONS.map(({ page }) => page));
    const paths = pages.map(({ path }) => documentedPath(path));
    expect(paths.filter((path) => !tried.has(path))).toEqual([]);
  });
});
