// These tests operate pages in a browser.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { deliver } from "../../sandbox/x/messages.ts";
import { overhangOf, violationsInSchemes, violationsOf } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { consentRequest, personId, postJson } from "../sandbox/call-simulated-x.ts";

declare const refusedByPolicy: string[];

const NETWORKS = [
  "x",
  "meta",
  "openai",
  "snap",
  "slack",
  "discord",
  "google_chat",
  "teams",
  "telegram",
  "line",
  "whatsapp",
] as const;
const PATHS = ["/", ...NETWORKS.map((network) => `/networks/${network}`)];

const WIDTHS = [360, 390, 768, 1_280] as const;

/** Control characters that reverse the text direction, and close bidirectional isolates around the text. */
const TURNED = "\u2069\u2069\u202e";

const HOSTILE = [
  "<script>document.title='owned'</script>",
  "<img src=x onerror=\"document.title='owned'\">",
  "</p></li></ol></main><iframe src=https://evil.example></iframe>",
  `${TURNED}<style>*{display:none}</style>`,
  "javascript:document.title='owned'//https://evil.example",
  `&lt;b&gt; ${"x".repeat(400)}`,
].join("\n");

describe.skipIf(!hasBrowser)("the sandbox in a browser", () => {
  let sandbox: Sandbox;
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    sandbox = await startSandbox();
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  /** Sends `text` to each network as the service would. */
  async function sendEverywhere(text: string): Promise<void> {
    const { urls, telegram, line, whatsapp, meta, openai, snap } = sandbox;
    deliver(sandbox.x, personId(sandbox, "acme_team"), personId(sandbox, "ada_builds"), text);
    deliver(sandbox.x, personId(sandbox, "ada_builds"), personId(sandbox, "acme_team"), text);
    const event = { event_name: text, event_id: text, event_time: Math.floor(Date.now() / 1000) };
    const place = { action_source: "website", event_source_url: `https://a.example/${text}` };
    const data = [{ ...event, ...place, user_data: { client_user_agent: "Firefox", [text]: text } }];
    const at = Math.floor(Date.now() / 1000);
    const viewed = { id: text, type: "page_viewed", timestamp_ms: at * 1000, source_url: place.event_source_url };
    const events = [{ ...viewed, user: { [text]: text }, data: { type: "contents" } }];
    const user_data = { client_ip_address: "192.0.2.1", client_user_agent: "Firefox", [text]: text };
    const view = { ...place, event_name: "PAGE_VIEW", event_time: at, event_id: text, action_source: "WEB", user_data };
    const card = { type: "AdaptiveCard", version: "1.4", body: [{ type: "RichTextBlock", inlines: [] as unknown[] }] };
    card.body[0]?.inlines.push({ type: "TextRun", text });
    const attachments = [{ contentType: "application/vnd.microsoft.card.adaptive", content: card }];
    const push = { to: line.to, messages: [{ type: "text", text }] };
    const body = { messaging_product: "whatsapp", to: whatsapp.to, type: "text", text: { body: text } };
    const answers = await Promise.all([
      postJson(`${urls.meta}/v27.0/${meta.pixelId}/events`, { data, access_token: meta.accessToken }),
      postWithToken(`${urls.openai}/v1/events?pid=${openai.pixelId}`, openai.accessToken, { events }),
      postJson(`${urls.snap}/v3/${snap.pixelId}/events?access_token=${snap.accessToken}`, { data: [view] }),
      postJson(urls.slackWebhook, slackBody(text)),
      postJson(urls.discordWebhook, { content: text }),
      postJson(urls.googleChatWebhook, { text }),
      postJson(urls.teamsWebhook, { type: "message", attachments }),
      postJson(`${urls.telegram}/bot${telegram.botToken}/sendMessage`, { chat_id: telegram.chatId, text }),
      postWithToken(`${urls.line}/v2/bot/message/push`, line.accessToken, push),
      postWithToken(`${urls.whatsapp}/v27.0/${whatsapp.phoneNumberId}/messages`, whatsapp.accessToken, body),
    ]);
    expect(answers.map(({ ok }) => ok)).toEqual(answers.map(() => true));
  }

  /** Builds a Slack message as the service does: the text for notifications, and the same text in a block. */
  function slackBody(text: string) {
    return { text, blocks: [{ type: "section", text: { type: "plain_text", text } }] };
  }

  function postWithToken(url: string, token: string, body: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  }

  /** Opens a browser page. Collects failed scripts and violations of the content security policy in `wrong`. */
  async function open(options: BrowserContextOptions = {}): Promise<{ page: Page; wrong: string[] }> {
    const page = await (await browser.newContext(options)).newPage();
    const wrong: string[] = [];
    page.on("pageerror", ({ message }) => wrong.push(message));
    page.on("console", (message) => {
      if (message.type() === "error") wrong.push(message.text());
    });
    await page.addInitScript(() => {
      const refused: string[] = [];
      Object.assign(globalThis, { refusedByPolicy: refused });
      document.addEventListener("securitypolicyviolation", ({ violatedDirective }) => refused.push(violatedDirective));
    });
    return { page, wrong };
  }

  /** Returns the elements of a page that have their own horizontal scroll bar, each by its tag and class. */
  function wideParts(): string[] {
    return [...document.querySelectorAll("body *")]
      .filter((part) => /auto|scroll/.test(getComputedStyle(part).overflowX) && part.scrollWidth > part.clientWidth)
      .map(({ className, tagName }) => `${tagName} ${className}`);
  }

  test("has accessible pages no wider than the screen with hostile texts, in either color scheme", async () => {
    await sendEverywhere(HOSTILE);
    sandbox.faults.add({ network: "slack", kind: "500", path: HOSTILE });
    sandbox.faults.add({ network: "x", kind: "429", count: 3, retryAfter: 60 });
    const ada = personId(sandbox, "ada_builds");
    sandbox.x.people.set(ada, { id: ada, username: "ada_builds", name: HOSTILE });
    const { page, wrong } = await open();
    for (const path of PATHS) {
      await page.goto(sandbox.url + path);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        expect([path, width, await overhangOf(page)]).toEqual([path, width, 0]);
        expect([path, width, ...(await page.evaluate(wideParts))]).toEqual([path, width]);
      }
      expect([path, ...(await violationsInSchemes(page))]).toEqual([path]);
      expect(await page.title()).toContain("reachlog sandbox");
      expect(await page.locator("main iframe, main img, main script, main style").count()).toBe(0);
      expect(await page.evaluate(() => refusedByPolicy)).toEqual([]);
    }
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("reports a violation of the content security policy", async () => {
    const { page, wrong } = await open();
    await page.goto(sandbox.url);
    await page.evaluate(() => {
      document.body.append(
        Object.assign(document.createElement("script"), { textContent: "document.title = 'owned'" }),
      );
    });
    await page.waitForFunction(() => refusedByPolicy.length > 0);
    expect(await page.title()).toBe("reachlog sandbox");
    expect(wrong).toHaveLength(1);
    await page.context().close();
  });

  test("has an accessible consent page without errors", async () => {
    const { page, wrong } = await open({ viewport: { width: 360, height: 800 } });
    await page.goto(`${sandbox.urls.xAuthorize}?${consentRequest(sandbox, { scope: "dm.read" })}`);
    expect(await violationsOf(page)).toEqual([]);
    expect(await overhangOf(page)).toBe(0);
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  test("shows each message once, as its readers see it", async () => {
    await sendEverywhere("hello <there>");
    const { page } = await open();
    for (const network of NETWORKS) {
      await page.goto(`${sandbox.url}/networks/${network}`);
      const text = (await page.textContent("section")) ?? "";
      // X's page shows two messages, one in each direction. The pages with events show the text in an event's address,
      // in its id and as a name in its user data; Meta's page shows it in the event's name too.
      const shown = { x: 2, meta: 4, openai: 3, snap: 3 }[network as string] ?? 1;
      expect([network, text.split("hello <there>").length - 1]).toEqual([network, shown]);
    }
    await page.context().close();
  });

  test("isolates direction marks from the text around them", async () => {
    const ada = personId(sandbox, "ada_builds");
    sandbox.x.people.set(ada, { id: ada, username: "ada_builds", name: `Ada${TURNED} Lovelace` });
    deliver(sandbox.x, ada, personId(sandbox, "acme_team"), `hello${TURNED}`);
    const { page } = await open();
    await page.goto(`${sandbox.url}/networks/x`);
    const [nameEnd, first, last] = await page.evaluate(() => {
      const handle = document.querySelector(".with .quiet")?.firstChild as Text;
      const leftOf = (at: number): number => {
        const range = document.createRange();
        range.setStart(handle, at);
        range.setEnd(handle, at + 1);
        return range.getBoundingClientRect().left;
      };
      return [document.querySelector(".with bdi")?.getBoundingClientRect().right ?? NaN, leftOf(0), leftOf(5)];
    });
    expect(first).toBeGreaterThanOrEqual(nameEnd ?? NaN);
    expect(last).toBeGreaterThan(first ?? NaN);
    await page.context().close();
  });

  test("shows new messages and faults without a reload, keeps a text being written, and reports a lost connection", async () => {
    const { page } = await open();
    const [us, ada] = [personId(sandbox, "acme_team"), personId(sandbox, "ada_builds")];
    deliver(sandbox.x, us, ada, "hello");
    await page.goto(`${sandbox.url}/networks/x`);
    await page.waitForSelector("#connection:has-text('Live')");
    await page.fill("input[name=text]", "STO");
    await page.evaluate(() => {
      document.body.dataset["loaded"] = "once";
    });
    deliver(sandbox.x, us, ada, "just in");
    await page.waitForSelector("text=just in");
    sandbox.faults.add({ network: "x", kind: "500", count: 2 });
    await page.waitForSelector("[role=switch][aria-checked=true]:has-text('Internal error')");
    expect(await page.evaluate(() => document.body.dataset["loaded"])).toBe("once");
    expect(await page.inputValue("input[name=text]")).toBe("STO");
    const port = Number(new URL(sandbox.url).port);
    await sandbox[Symbol.asyncDispose]();
    await page.waitForSelector("#connection:has-text('Connection lost')");
    sandbox = await startSandbox({ port });
    await page.waitForSelector("#connection:has-text('Live')");
    await page.waitForSelector("text=No message has arrived yet");
    await page.context().close();
  });

  test("has the same texts and working switches without script", async () => {
    await sendEverywhere("hello");
    const [withScript, without] = [(await open()).page, (await open({ javaScriptEnabled: false })).page];
    for (const path of PATHS) {
      await withScript.goto(sandbox.url + path);
      await without.goto(sandbox.url + path);
      expect(await without.textContent("main")).toBe(await withScript.textContent("main"));
    }
    await without.goto(`${sandbox.url}/networks/slack`);
    await without.click("[role=switch]:has-text('Too many requests')");
    expect(sandbox.faults.list()).toEqual([{ network: "slack", kind: "429" }]);
    expect(new URL(without.url()).pathname).toBe("/networks/slack");
    expect(await without.textContent("li:has([aria-checked=true]) .status")).toBe("on");
    await without.click("[role=switch]:has-text('Too many requests')");
    expect(sandbox.faults.list()).toEqual([]);
    await without.click("[role=switch]:has-text('Delivered, no answer')");
    await without.goto(sandbox.url);
    expect(await without.textContent(".card:has-text('Slack')")).toContain("1 fault on");
    await without.click("text=All off");
    expect(await without.textContent("main")).not.toContain("fault on");
    await withScript.context().close();
    await without.context().close();
  });

  test("switches on a fault by keyboard alone", async () => {
    const { page } = await open();
    await page.goto(`${sandbox.url}/networks/telegram`);
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    for (let presses = 0; presses < 20 && (await focused()) !== "Bot blocked"; presses++)
      await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.waitForSelector("[role=switch][aria-checked=true]");
    expect(sandbox.faults.list()).toEqual([{ network: "telegram", kind: "bot_blocked" }]);
    await page.context().close();
  });

  test("shows the newest messages", async () => {
    for (let at = 1; at <= 60; at++) {
      sandbox.line.messages.add({ to: sandbox.line.to, text: `number ${at}.`, at });
      deliver(sandbox.x, personId(sandbox, "acme_team"), personId(sandbox, "ada_builds"), `number ${at}.`);
    }
    const { page } = await open();
    for (const [path, first] of [
      ["/networks/line", 36],
      ["/networks/x", 51],
    ] as const) {
      await page.goto(sandbox.url + path);
      expect(await page.textContent("h1")).toContain("60 messages so far");
      const texts = await page.locator(".text").allTextContents();
      expect([texts[0], texts.at(-1)]).toEqual([`number ${first}.`, "number 60."]);
    }
    await page.context().close();
  });
});
