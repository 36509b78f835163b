// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { countPixel } from "../../sandbox/meta.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { postJson } from "./call-simulated-x.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox[Symbol.asyncDispose]());

describe("the sandbox's Meta", () => {
  const nowS = (): number => Math.floor(Date.now() / 1000);
  const pageView = (more: object = {}) => ({
    event_name: "PageView",
    event_id: "e1",
    event_time: nowS(),
    action_source: "website",
    event_source_url: "https://shop.example/",
    user_data: { client_user_agent: "Mozilla/5.0" },
    ...more,
  });
  const send = (data: unknown, token = sandbox.meta.accessToken, version = "v27.0"): Promise<Response> =>
    postJson(`${sandbox.urls.meta}/${version}/${sandbox.meta.pixelId}/events`, { data, access_token: token });
  const codeOf = async (answer: Response): Promise<unknown> => {
    const { error } = (await answer.json()) as { error?: { code: number; error_subcode?: number } };
    return [answer.status, error?.code, error?.error_subcode];
  };

  test("counts one event per id in 48 hours, and each event without an id", async () => {
    expect(await (await send([pageView()])).json()).toMatchObject({ events_received: 1, messages: [] });
    await send([pageView()]);
    expect([sandbox.meta.requests.total, sandbox.meta.events.total]).toEqual([2, 1]);
    await send([
      pageView({ event_name: "Lead" }),
      pageView({ event_id: undefined }),
      pageView({ event_id: undefined }),
    ]);
    expect(sandbox.meta.events.total).toBe(4);
    sandbox.clock.advance(48 * 3_600_000);
    await send([pageView()]);
    expect(sandbox.meta.events.total).toBe(5);
  });

  test.each([
    ["the same name and id, 47 hours later", 47, "PageView", "e1", 1],
    ["the same name and id, 49 hours later", 49, "PageView", "e1", 2],
    ["another name", 0, "Purchase", "e1", 2],
    ["another id", 0, "PageView", "e2", 2],
  ])("counts a click and the event of its page's pixel: %s", async (_what, hours, ev, eid, counted) => {
    await send([pageView()]);
    sandbox.clock.advance(hours * 3_600_000);
    countPixel(sandbox.meta, new URLSearchParams({ ev, eid }));
    expect([sandbox.meta.accepted, sandbox.meta.events.total]).toEqual([2, counted]);
  });

  test.each([
    ["no user agent", { user_data: {} }],
    ["no page", { event_source_url: undefined }],
    ["no action source", { action_source: undefined }],
    ["no name", { event_name: "" }],
    ["more than 7 days old", { event_time: nowS() - 7 * 24 * 3600 - 60 }],
    ["in the future", { event_time: nowS() + 3600 }],
    ["in milliseconds", { event_time: Date.now() }],
    ["in fractions of seconds", { event_time: nowS() + 0.5 }],
  ])("refuses a whole batch for one event: %s", async (_why, bad) => {
    expect(await codeOf(await send([pageView({ event_id: "good" }), pageView(bad)]))).toEqual([400, 100, 2_804_019]);
    expect(sandbox.meta.events.total).toBe(0);
  });

  const withUser = (user: object) => pageView({ user_data: { client_user_agent: "Mozilla/5.0", ...user } });
  const MADE = Date.now() - 60_000;

  test.each([
    `fb.1.${MADE}.AbC%20d`,
    `fb.1.${MADE}.fb.1.${MADE}.AbC`,
    `fb.1.${MADE}.`,
    `fb.1.${MADE}`,
    `fb.1.${Math.floor(MADE / 1000)}.AbC`,
    `fb.1.${MADE + 3_600_000}.AbC`,
    `FB.1.${MADE}.AbC`,
    "AbC",
    "",
    null,
    7,
  ])("refuses a whole batch for the click id %j", async (fbc) => {
    expect(await codeOf(await send([pageView(), withUser({ fbc })]))).toEqual([400, 100, 2_804_001]);
    expect(sandbox.meta.events.total).toBe(0);
  });

  test.each([`fb.1.${MADE}.AbC`, "fb.1.1.1098115397", `fb.1.${MADE + 3_600_000}.1`, "", null])(
    "refuses a whole batch for the browser id %j",
    async (fbp) => {
      expect(await codeOf(await send([pageView(), withUser({ fbp })]))).toEqual([400, 100, 2_804_019]);
    },
  );

  test("accepts ids as Meta's own libraries write them", async () => {
    const ids = { fbc: `fb.1.${MADE}.IwAR0_-aB.AQEAAQMB`, fbp: `fb.2.${MADE}.1098115397.AQEAAQMB` };
    expect((await send([withUser(ids), withUser({ fbc: `fb.0.${MADE}.AbC`, fbp: `fb.1.${MADE}.7` })])).status).toBe(
      200,
    );
  });

  test.each(["", "TEST 1", "TEST%20", 7, null])("refuses the test code %j", async (test_event_code) => {
    const { urls, meta } = sandbox;
    const body = { data: [pageView()], access_token: meta.accessToken, test_event_code };
    expect(await codeOf(await postJson(`${urls.meta}/v26.0/${meta.pixelId}/events`, body))).toEqual([
      400, 100, 2_804_019,
    ]);
  });

  test("accepts up to 1,000 events at once", async () => {
    const events = Array.from({ length: 1_001 }, (_, number) => pageView({ event_id: `e${number}` }));
    expect((await send(events)).status).toBe(400);
    expect((await send([])).status).toBe(400);
    expect((await send(events.slice(1))).status).toBe(200);
    expect(sandbox.meta.events.total).toBe(1_000);
  });

  test("refuses a wrong token, a retired or future version, and another pixel", async () => {
    expect(await codeOf(await send([pageView()], "other"))).toEqual([400, 190, undefined]);
    expect(await codeOf(await send([pageView()], undefined, "v18.0"))).toEqual([400, 2635, undefined]);
    expect(await codeOf(await send([pageView()], undefined, "v99.0"))).toEqual([400, 2500, undefined]);
    const { accessToken, pixelId } = sandbox.meta;
    const look = (pixel: string, token: string): Promise<Response> =>
      fetch(`${sandbox.urls.meta}/v27.0/${pixel}?fields=id&access_token=${token}`);
    expect(await codeOf(await look("1", accessToken))).toEqual([400, 100, 33]);
    expect(await codeOf(await look(pixelId, "other"))).toEqual([400, 190, undefined]);
    expect(await (await look(pixelId, accessToken)).json()).toEqual({ id: pixelId });
    expect(sandbox.meta.events.total).toBe(0);
  });
});

describe("the sandbox's Slack", () => {
  const say = (body: unknown): Promise<Response> => postJson(sandbox.urls.slackWebhook, body);
  const answered = async (answer: Response): Promise<unknown> => [answer.status, await answer.text()];

  test("answers ok in plain text and refuses invalid messages", async () => {
    const ok = await say({ text: "hello", blocks: [{ type: "section", text: { type: "mrkdwn", text: "there" } }] });
    expect(ok.headers.get("content-type")).toStartWith("text/plain");
    expect(await answered(ok)).toEqual([200, "ok"]);
    expect(sandbox.slack.messages.kept.map(({ text }) => text)).toEqual(["hello\nthere"]);
    sandbox.slack.limit = 100;
    const section = (length: number) => ({ type: "section", text: { type: "mrkdwn", text: "x".repeat(length) } });
    for (const [body, error] of [
      [{}, "no_text"],
      [{ text: " " }, "no_text"],
      [[], "invalid_payload"],
      [{ text: 5 }, "invalid_payload"],
      [{ text: "x".repeat(40_001) }, "msg_too_long"],
      [{ blocks: [section(3_001)] }, "invalid_blocks"],
      [{ blocks: Array.from({ length: 51 }, () => section(1)) }, "invalid_blocks"],
    ] as const) {
      expect(await answered(await say(body))).toEqual([400, error]);
    }
    const notJson = await fetch(sandbox.urls.slackWebhook, { method: "POST", body: '{"text":"x"}' });
    expect(await answered(notJson)).toEqual([400, "invalid_payload"]);
    expect(sandbox.slack.messages.total).toBe(1);
  });

  test("accepts only its own webhook address", async () => {
    const { url } = sandbox;
    expect(await answered(await postJson(`${url}/slack/services/T/B/other`, { text: "x" }))).toEqual([404, "no_team"]);
    const otherSecret = `${url}/slack/services/T0SANDBOX/B0SANDBOX/other`;
    expect(await answered(await postJson(otherSecret, { text: "x" }))).toEqual([404, "no_service"]);
    expect(await answered(await fetch(`${url}/slack/elsewhere`))).toEqual([404, "no_service"]);
  });

  test("accepts a short burst, then one message a second", async () => {
    for (let number = 0; number < 5; number++) expect((await say({ text: "x" })).status).toBe(200);
    const limited = await say({ text: "sixth" });
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
    sandbox.clock.advance(1_000);
    expect([(await say({ text: "x" })).status, (await say({ text: "x" })).status]).toEqual([200, 429]);
  });
});

describe("the sandbox's Telegram", () => {
  const call = (method: string, body: unknown, token = sandbox.telegram.botToken): Promise<Response> =>
    postJson(`${sandbox.urls.telegram}/bot${token}/${method}`, body);
  const say = (text: unknown, more: object = {}): Promise<Response> =>
    call("sendMessage", { chat_id: sandbox.telegram.chatId, text, ...more });

  test("answers with Telegram's errors and their codes as the status", async () => {
    expect(await (await say("x")).json()).toMatchObject({ ok: true, result: { message_id: 1, text: "x" } });
    for (const [answer, code, words] of [
      [await call("sendMessage", {}, "1:other"), 401, "Unauthorized"],
      [await call("sendMessage", {}, "nonsense"), 404, "Not Found"],
      [await call("nonsense", {}), 404, "method not found"],
      [await say("x", { chat_id: 5 }), 400, "chat not found"],
      [await say("x", { chat_id: null }), 400, "chat_id is empty"],
      [await say(" "), 400, "text is empty"],
      [await say(5), 400, "text is empty"],
      [await say("x".repeat(4_097)), 400, "too long"],
      [await say("1. a", { parse_mode: "MarkdownV2" }), 400, "can't parse entities"],
      [await say("a < b", { parse_mode: "HTML" }), 400, "can't parse entities"],
      [await say("x", { parse_mode: "bbcode" }), 400, "unsupported parse_mode"],
    ] as const) {
      const body = (await answer.json()) as { ok: boolean; error_code: number; description: string };
      expect([answer.status, body.ok, body.error_code]).toEqual([code, false, code]);
      expect(body.description).toContain(words);
    }
    expect(sandbox.telegram.messages.total).toBe(1);
    expect((await say("1\\. <b>&", { parse_mode: "MarkdownV2" })).status).toBe(400);
    expect((await say("1\\. a", { parse_mode: "MarkdownV2" })).status).toBe(200);
    expect((await say("<b>x</b>", { parse_mode: "HTML" })).status).toBe(200);
  });

  test("returns the bot and the chat, the latter by query", async () => {
    const url = `${sandbox.urls.telegram}/bot${sandbox.telegram.botToken}`;
    expect(await (await fetch(`${url}/getMe`)).json()).toMatchObject({ ok: true, result: { is_bot: true } });
    const chat = await fetch(`${url}/getChat?chat_id=${sandbox.telegram.chatId}`);
    const always = {
      accent_color_id: expect.any(Number),
      max_reaction_count: expect.any(Number),
      accepted_gift_types: { unlimited_gifts: false, limited_gifts: false, unique_gifts: false },
    };
    const result = { id: Number(sandbox.telegram.chatId), title: "Sandbox", ...always };
    expect(await chat.json()).toMatchObject({ ok: true, result });
  });

  test("names the new id of a group that became a supergroup", async () => {
    sandbox.telegram.migratedTo = "-100777";
    expect(await (await say("x")).json()).toMatchObject({
      ok: false,
      description: expect.stringContaining("upgraded to a supergroup"),
      parameters: { migrate_to_chat_id: -100_777 },
    });
    expect((await say("x", { chat_id: "-100777" })).status).toBe(200);
  });

  test("accepts a short burst, then a message a second and 20 a minute in a group", async () => {
    for (let number = 0; number < 5; number++) expect((await say("x")).status).toBe(200);
    const limited = await say("sixth");
    expect([limited.status, await limited.json()]).toMatchObject([429, { parameters: { retry_after: 1 } }]);
    for (let number = 0; number < 15; number++) {
      sandbox.clock.advance(1_000);
      expect((await say("x")).status).toBe(200);
    }
    let sent = 20;
    for (let second = 16; second < 60; second++) {
      sandbox.clock.advance(1_000);
      if ((await say("x")).status === 200) sent++;
    }
    expect(sent).toBeLessThanOrEqual(40);
    expect(sent).toBeGreaterThan(25);
  });
});

test("the sandbox's LINE returns all required members of an account's profile", async () => {
  const headers = { authorization: `Bearer ${sandbox.line.accessToken}` };
  const info = await fetch(`${sandbox.urls.line}/v2/bot/info`, { headers });
  const members = { userId: expect.stringMatching(/^U[0-9a-f]{32}$/), basicId: "@sandbox", displayName: "Sandbox" };
  expect(await info.json()).toEqual({ ...members, chatMode: "bot", markAsReadMode: "auto" });
});
