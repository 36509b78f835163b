// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { renderDiscord, renderGoogleChat, renderSlack, renderWhatsapp } from "../../sandbox/render-chat-markup.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { renderTeams } from "../../sandbox/teams.ts";
import { postJson } from "./call-simulated-x.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox[Symbol.asyncDispose]());

const answered = async (answer: Response): Promise<unknown> => [answer.status, await answer.json()];

describe("the sandbox's Discord", () => {
  const say = (body: unknown, query = "?wait=true") => postJson(sandbox.urls.discordWebhook + query, body);

  test("answers with the message if asked to wait, else without a body", async () => {
    const [status, saved] = (await answered(await say({ content: " hi " }))) as [number, { id: string }];
    expect([status, saved.id]).toEqual([200, expect.stringMatching(/^\d{19}$/)]);
    expect((await say({ content: "there" }, "")).status).toBe(204);
    expect(sandbox.discord.messages.kept.map(({ text }) => text)).toEqual(["hi", "there"]);
    expect((await fetch(sandbox.urls.discordWebhook)).status).toBe(200);
  });

  test("returns all required members of a message and a webhook", async () => {
    const saved = (await (await say({ content: " hi ", flags: 4 })).json()) as object;
    expect(saved).toMatchObject({ content: "hi", flags: 4, tts: false, edited_timestamp: null });
    const members = [
      "attachments",
      "author",
      "channel_id",
      "components",
      "content",
      "edited_timestamp",
      "embeds",
      "flags",
    ];
    const others = ["id", "mention_everyone", "mention_roles", "mentions", "pinned", "timestamp", "tts", "type"];
    expect(Object.keys(saved).toSorted()).toEqual([...members, ...others, "webhook_id"]);
    const webhook = (await (await fetch(sandbox.urls.discordWebhook)).json()) as object;
    expect(webhook).toMatchObject({ application_id: null, avatar: null, name: "Sandbox", guild_id: "76" });
  });

  test("refuses invalid and overlong messages", async () => {
    for (const [body, code] of [
      [{}, 50_006],
      [{ content: " \n" }, 50_006],
      [{ content: 5 }, 50_006],
      [{ content: "x".repeat(2_001) }, 50_035],
    ] as const) {
      sandbox.clock.advance(2_000);
      expect(await answered(await say(body))).toMatchObject([400, { code }]);
    }
    const noJson = await fetch(sandbox.urls.discordWebhook, { method: "POST", body: "{" });
    expect(await answered(noJson)).toMatchObject([400, { code: 50_109 }]);
    expect(sandbox.discord.messages.total).toBe(0);
  });

  test("accepts only its own webhook address", async () => {
    const { discordWebhook } = sandbox.urls;
    expect(await answered(await postJson(`${discordWebhook}x`, {}))).toMatchObject([401, { code: 50_027 }]);
    expect(await answered(await postJson(discordWebhook.replace("/1234", "/9234"), {}))).toMatchObject([
      404,
      { code: 10_015 },
    ]);
    expect(await answered(await fetch(`${sandbox.url}/discord/elsewhere`))).toMatchObject([404, { code: 0 }]);
  });

  test("defaults to version 6 of the API, with pauses in milliseconds", async () => {
    const { discordWebhook } = sandbox.urls;
    const versions: [string, number][] = [
      ["/api/", 1_500],
      ["/api/v6/", 1_500],
      ["/api/v7/", 1_500],
      ["/api/v8/", 1.5],
      ["/api/v10/", 1.5],
    ];
    for (const [path, retry_after] of versions) {
      sandbox.faults.add({ network: "discord", kind: "429", retryAfter: 1.5, count: 1 });
      const limited = await postJson(discordWebhook.replace("/api/", path), { content: "x" });
      expect(limited.headers.get("retry-after")).toBe(String(Math.ceil(retry_after)));
      expect(await answered(limited)).toMatchObject([429, { retry_after }]);
    }
    const unknown = await postJson(discordWebhook.replace("/api/", "/api/v11/"), { content: "x" });
    expect(await answered(unknown)).toMatchObject([400, { code: 50_041 }]);
  });

  test("accepts five messages in two seconds, then answers 429 with a pause", async () => {
    const remaining: (string | null)[] = [];
    for (let nth = 0; nth < 5; nth++)
      remaining.push((await say({ content: "x" })).headers.get("x-ratelimit-remaining"));
    expect(remaining).toEqual(["4", "3", "2", "1", "0"]);
    const limited = await postJson(sandbox.urls.discordWebhook.replace("/api/", "/api/v10/"), { content: "sixth" });
    expect(["1", "2"]).toContain(limited.headers.get("retry-after") ?? "");
    expect(await answered(limited)).toEqual([
      429,
      { message: expect.any(String), retry_after: expect.any(Number), global: false },
    ]);
    sandbox.clock.advance(2_000);
    expect((await say({ content: "x" })).status).toBe(200);
  });

  test("records if a message would ping members or show an embed", async () => {
    await say({ content: "@everyone https://shop.example/" });
    await say({ content: "@everyone", allowed_mentions: { parse: ["everyone"] } });
    await say({ content: "@everyone https://shop.example/", allowed_mentions: { parse: [] }, flags: 4 });
    await say({ content: "\\@everyone" });
    expect(sandbox.discord.messages.kept.map(({ pings, embeds }) => [pings, embeds])).toEqual([
      [true, true],
      [true, false],
      [false, false],
      [false, false],
    ]);
  });
});

describe("the sandbox's Google Chat", () => {
  const say = (body: unknown, url = sandbox.urls.googleChatWebhook) => postJson(url, body);

  test("names an accepted message and refuses invalid ones", async () => {
    expect(await answered(await say({ text: "hi" }))).toMatchObject([200, { name: "spaces/AAAASandbox/messages/t.1" }]);
    for (const [body, words] of [
      [{}, "Message cannot be empty"],
      [{ text: " " }, "Message cannot be empty"],
      [{ text: 5 }, "TYPE_STRING"],
      [{ content: "x" }, 'Unknown name "content"'],
      [{ text: "€".repeat(10_700) }, "too long"],
    ] as const) {
      const error = { status: "INVALID_ARGUMENT", message: expect.stringContaining(words) };
      expect(await answered(await say(body))).toMatchObject([400, { error }]);
    }
    expect(sandbox.googleChat.messages.kept.map(({ text }) => text)).toEqual(["hi"]);
  });

  test("requires the right key, token and space", async () => {
    const { googleChatWebhook: url } = sandbox.urls;
    expect(await answered(await say({ text: "x" }, url.replace("key=", "key=x")))).toMatchObject([
      400,
      { error: { details: [{ reason: "API_KEY_INVALID" }] } },
    ]);
    expect((await say({ text: "x" }, url.replace("token=", "token=x"))).status).toBe(403);
    expect((await say({ text: "x" }, url.replace("/AAAA", "/BBBB"))).status).toBe(404);
    expect((await fetch(`${sandbox.url}/google_chat/v2`)).status).toBe(404);
  });

  test("accepts sixty messages in a minute, then answers 429 without Retry-After", async () => {
    let accepted = 0;
    let limited = await say({ text: "x" });
    // More than sixty messages may be accepted, because the allowance grows while the test runs.
    for (; limited.status === 200 && accepted < 120; accepted++) limited = await say({ text: "x" });
    expect(accepted).toBeGreaterThanOrEqual(60);
    expect(limited.headers.has("retry-after")).toBe(false);
    expect(await answered(limited)).toMatchObject([429, { error: { status: "RESOURCE_EXHAUSTED" } }]);
    const refusedAt = performance.now();
    sandbox.clock.advance(1_000);
    let more = 0;
    while ((await say({ text: "x" })).status === 200) more++;
    // Each second allows one message: the second that the clock was moved by, and those that pass during the test.
    expect(more).toBeGreaterThanOrEqual(1);
    expect(more).toBeLessThanOrEqual(2 + Math.floor((performance.now() - refusedAt) / 1_000));
  });
});

describe("the sandbox's Teams", () => {
  const card = (...body: unknown[]) => ({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        content: { type: "AdaptiveCard", version: "1.4", body },
      },
    ],
  });
  const say = (body: unknown, url = sandbox.urls.teamsWebhook) => postJson(url, body);

  test("accepts each body that fits the trigger, even if it cannot be posted", async () => {
    sandbox.teams.limit = 100;
    const good = card({ type: "TextBlock", text: "hi" });
    const accepted = await say(good);
    expect([accepted.status, await accepted.text()]).toEqual([202, ""]);
    expect(accepted.headers.get("x-ms-workflow-run-id")).toMatch(/^\w+$/);
    const bad = [
      card(),
      card({ type: "Nonsense" }),
      card({ type: "RichTextBlock", inlines: [] }),
      card({ type: "RichTextBlock", inlines: [{ type: "TextRun" }] }),
      card({ type: "TextBlock", text: "x".repeat(28_700) }),
      { type: "message", attachments: [] },
      { type: "message", attachments: [{ contentType: "text/plain" }] },
    ];
    for (const body of bad) expect((await say(body)).status).toBe(202);
    expect([sandbox.teams.messages.total, sandbox.teams.failures.total]).toEqual([1, bad.length]);
    expect(sandbox.teams.messages.kept.map(({ text }) => text)).toEqual(["hi"]);
  });

  test("requires the trigger's schema, the signature and an existing workflow", async () => {
    const { teamsWebhook: url } = sandbox.urls;
    for (const body of [{}, { type: "message" }, { type: "message", attachments: [1] }]) {
      expect(await answered(await say(body))).toMatchObject([400, { error: { code: "TriggerInputSchemaMismatch" } }]);
    }
    expect((await say(card(), `${url}x`)).status).toBe(401);
    expect((await say(card(), url.replace("/workflows/0", "/workflows/9"))).status).toBe(404);
    expect((await fetch(url)).status).toBe(404);
  });

  test("accepts four requests in a second", async () => {
    const good = card({ type: "TextBlock", text: "hi" });
    for (let nth = 0; nth < 4; nth++) expect((await say(good)).status).toBe(202);
    const limited = await say(good);
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
  });
});

describe("a message as readers see it", () => {
  const teams = (element: object) =>
    renderTeams(
      JSON.stringify({
        attachments: [
          {
            contentType: "application/vnd.microsoft.card.adaptive",
            content: { type: "AdaptiveCard", version: "1.4", body: [element] },
          },
        ],
      }),
    );

  test.each([
    ["@here <@1> <@&2> <#3>", "@here <@1> <@&2> <#3>", ["mention", "mention", "mention", "mention"]],
    ["**b** *i* _i_ __u__ ~~s~~ ||x||", "b i i u s x", ["bold", "italic", "italic", "underlined", "struck", "spoiler"]],
    ["[bank](https://evil.example)", "bank", ["masked link"]],
    ["`c` ```d```", "c d", ["code", "code block"]],
    ["# a\n- b\n> c\n-# d", "a\nb\nc\nd", ["heading", "list", "quote", "small print"]],
    [":smile: <a:wave:1> <t:0:R>", ":smile: <a:wave:1> <t:0:R>", ["emoji", "emoji", "timestamp"]],
    ["**_x_**", "x", ["bold", "italic"]],
    ["https://e.example/*a* \\*b\\* snake_case_name", "https://e.example/*a* *b* snake_case_name", []],
    // For Discord the address ends at the bracket, whatever character is before it, so the rest is a mention.
    ["https://e.example/\\<@1>", "https://e.example/\\<@1>", ["mention"]],
  ])("renders on Discord: %j", (content, text, marks) => {
    expect(renderDiscord(content)).toEqual({ text, marks });
  });

  test.each([
    ["*b* _i_ ~s~ `c`", "b i s c", ["bold", "italic", "struck", "code"]],
    ["<users/all> <https://evil.example|bank>", "<users/all> bank", ["mention", "masked link"]],
    ["* a\n> b", "• a\nb", ["list", "quote"]],
    ["https://e.example/_a_ 5 * 3", "https://e.example/_a_ 5 * 3", []],
  ])("renders on Google Chat: %j", (content, text, marks) => {
    expect(renderGoogleChat(content)).toEqual({ text, marks });
  });

  test.each([
    ["*b* _i_ ~s~ ```c```", "b i s c", ["bold", "italic", "struck", "monospace"]],
    ["- a\n> b", "• a\nb", ["list", "quote"]],
  ])("renders on WhatsApp: %j", (content, text, marks) => {
    expect(renderWhatsapp(content)).toEqual({ text, marks });
  });

  test("renders Markdown in a Teams TextBlock, and dates in any Teams text", () => {
    const text = "**b** _i_ [bank](https://evil.example) \\*c\\* {{DATE(x)}}";
    expect(teams({ type: "TextBlock", text })).toEqual({
      text: "b i bank *c* a date in words",
      marks: ["bold", "italic", "masked link", "date"],
    });
    const inlines = [{ type: "TextRun", text }];
    expect(teams({ type: "RichTextBlock", inlines })).toEqual({
      text: text.replace("{{DATE(x)}}", "a date in words"),
      marks: ["date"],
    });
  });

  test("renders Slack's mentions, and formatting unless it is switched off", () => {
    expect(renderSlack({ text: "<!channel> <https://evil.example|bank> *b* &lt;c&gt;" })).toEqual({
      text: "<!channel> bank b <c>",
      marks: ["mention", "masked link", "bold"],
    });
    expect(renderSlack({ text: "*b* <@U1>", mrkdwn: false }).marks).toEqual(["mention"]);
    const block = (type: string) => ({ blocks: [{ text: { type, text: "<!here> *b* &amp;" } }] });
    expect(renderSlack(block("mrkdwn")).marks).toEqual(["mention", "bold"]);
    expect(renderSlack(block("plain_text"))).toEqual({ text: "<!here> *b* &", marks: [] });
  });
});
