import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";

describe("the sandbox's Meta, Slack and Telegram", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const post = (path: string, body: unknown): Promise<Response> =>
    fetch(sandbox.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  const pageView = (more: object = {}) => ({
    event_name: "PageView",
    event_id: "e1",
    event_time: Math.floor(Date.now() / 1000),
    action_source: "website",
    event_source_url: "https://shop.example/",
    user_data: { client_user_agent: "Mozilla/5.0" },
    ...more,
  });
  const meta = (data: unknown[], token = sandbox.meta.accessToken, version = "v26.0"): Promise<Response> =>
    post(`/meta/${version}/${sandbox.meta.pixelId}/events`, { data, access_token: token });

  test("Meta counts one event for each id, and refuses a batch whole for one bad event", async () => {
    expect(await (await meta([pageView()])).json()).toMatchObject({ events_received: 1 });
    await meta([pageView()]);
    expect([sandbox.meta.requests.total, sandbox.meta.events.total]).toEqual([2, 1]);
    const week = 7 * 24 * 3600;
    for (const bad of [
      { user_data: {} },
      { event_source_url: undefined },
      { action_source: undefined },
      { event_time: Math.floor(Date.now() / 1000) - week - 60 },
      { event_time: Math.floor(Date.now() / 1000) + 3600 },
      { event_time: Date.now() / 1000 + 0.5 },
    ]) {
      const refused = await meta([pageView({ event_id: "good" }), pageView(bad)]);
      expect([refused.status, ((await refused.json()) as { error: { code: number } }).error.code]).toEqual([400, 100]);
    }
    expect(sandbox.meta.events.total).toBe(1);
  });

  test("Meta refuses a wrong token and an old version", async () => {
    for (const answer of [await meta([pageView()], "other"), await meta([pageView()], undefined, "v18.0")]) {
      expect(answer.status).toBe(400);
    }
    expect(sandbox.meta.events.total).toBe(0);
  });

  test("Slack says ok in plain text, refuses what is no message, and limits bursts", async () => {
    const hook = `/slack${sandbox.slack.path}`;
    const ok = await post(hook, { text: "hello" });
    expect([ok.status, await ok.text()]).toEqual([200, "ok"]);
    for (const [body, error] of [
      [{}, "no_text"],
      [[], "invalid_payload"],
      [{ blocks: [{ type: "section", text: { type: "mrkdwn", text: "x".repeat(3_001) } }] }, "invalid_blocks"],
    ] as const) {
      const refused = await post(hook, body);
      expect([refused.status, await refused.text()]).toEqual([400, error]);
    }
    const unknown = await post("/slack/services/T/B/other", { text: "x" });
    expect([unknown.status, await unknown.text()]).toEqual([404, "no_service"]);
    await post(hook, { text: "fifth" });
    const limited = await post(hook, { text: "sixth" });
    expect(limited.status).toBe(429);
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    sandbox.clock.advance(5_000);
    expect((await post(hook, { text: "later" })).status).toBe(200);
  });

  test("Telegram answers with its own errors", async () => {
    const { botToken, chatId } = sandbox.telegram;
    const say = (body: object, token = botToken): Promise<Response> => post(`/telegram/bot${token}/sendMessage`, body);
    expect(await (await say({ chat_id: chatId, text: "x" })).json()).toMatchObject({
      ok: true,
      result: { message_id: 1 },
    });
    for (const [answer, code, words] of [
      [await say({ chat_id: chatId, text: "x" }, "1:other"), 401, "Unauthorized"],
      [await say({ chat_id: "5", text: "x" }), 400, "chat not found"],
      [await say({ chat_id: chatId, text: " " }), 400, "text is empty"],
      [await say({ chat_id: chatId, text: "x".repeat(4_097) }), 400, "too long"],
    ] as const) {
      const body = (await answer.json()) as { ok: boolean; error_code: number; description: string };
      expect([answer.status, body.ok, body.error_code]).toEqual([code, false, code]);
      expect(body.description).toContain(words);
    }
    sandbox.telegram.migratedTo = "-100777";
    expect(await (await say({ chat_id: chatId, text: "x" })).json()).toMatchObject({
      parameters: { migrate_to_chat_id: -100_777 },
    });
    expect((await say({ chat_id: "-100777", text: "x" })).status).toBe(200);
  });
});
