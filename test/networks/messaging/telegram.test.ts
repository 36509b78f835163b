// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createTelegramChannel, TELEGRAM_ANSWERS, telegramText } from "../../../src/networks/messaging/telegram.ts";
import { startSandbox } from "../../../sandbox/sandbox.ts";
import { renderTelegram } from "../../../sandbox/render-chat-markup.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const TOKEN = "123456:ABC-DEF";
const DONE = { ok: true, result: { message_id: 42, date: 1, chat: { id: 7 } } };

function telegramAt(baseUrl: string) {
  return createTelegramChannel({ botToken: secret(TOKEN), chatId: "-100", baseUrl, safeFetch: safeFetchTo(baseUrl) });
}

const refusal = (error_code: number, description: string, parameters?: object) => ({
  ok: false,
  error_code,
  description,
  ...(parameters === undefined ? {} : { parameters }),
});

const refused = (status: number, words: string, channel: boolean): DispatchResult => ({
  outcome: "refused",
  status,
  detail: `Telegram answered ${status} ${words}`,
  channel,
});

test.each<[number, string, boolean]>([
  [400, "Bad Request: chat not found", true],
  [400, "Bad Request: group chat was upgraded to a supergroup chat", true],
  [400, "Bad Request: not enough rights to send text messages to the chat", true],
  [400, "Bad Request: PEER_ID_INVALID", true],
  [400, "Bad Request: can't parse entities: unexpected end", false],
  [400, "Bad Request: message is too long", false],
  [400, "Bad Request: message text is empty", false],
  [401, "Unauthorized", true],
  [403, "Forbidden: bot was blocked by the user", true],
  [403, "Forbidden: bot was kicked from the group chat", true],
  [403, "Forbidden: bot can't initiate conversation with a user", true],
  [403, "Forbidden: user is deactivated", true],
  [404, "Not Found", true],
  [409, "Conflict: terminated", false],
  [413, "Request Entity Too Large", false],
])("Telegram's answer %i %j refuses the whole channel: %p", (status, description, channel) => {
  expect(classifyAnswer(answer(status, refusal(status, description)), TELEGRAM_ANSWERS)).toEqual(
    refused(status, description, channel),
  );
});

test.each<[number, unknown, DispatchResult]>([
  [200, DONE, { outcome: "delivered", status: 200, networkId: "42" }],
  [200, { ok: true, result: {} }, { outcome: "delivered", status: 200 }],
  [200, refusal(400, "odd"), { outcome: "in_doubt", status: 200, detail: "Telegram answered 200 odd" }],
  [200, { ...DONE, ok: false }, { outcome: "in_doubt", status: 200, detail: "Telegram answered 200" }],
  [200, "<html>", { outcome: "in_doubt", status: 200, detail: "Telegram answered 200" }],
  [200, "", { outcome: "in_doubt", status: 200, detail: "Telegram answered 200" }],
  [400, "<html>", { outcome: "refused", status: 400, detail: "Telegram answered 400", channel: false }],
  [401, "", { outcome: "refused", status: 401, detail: "Telegram answered 401", channel: true }],
  [408, "", { outcome: "in_doubt", status: 408, detail: "Telegram answered 408" }],
  [
    500,
    refusal(500, "Internal Server Error"),
    { outcome: "in_doubt", status: 500, detail: "Telegram answered 500 Internal Server Error" },
  ],
  [502, "<html><h1>502 Bad Gateway</h1>", { outcome: "in_doubt", status: 502, detail: "Telegram answered 502" }],
])("Telegram's answer %i %j is classified", (status, body, result) => {
  expect(classifyAnswer(answer(status, body), TELEGRAM_ANSWERS)).toEqual(result);
});

test.each<[object | undefined, Record<string, string>, number | undefined]>([
  [{ retry_after: 35 }, {}, 35_000],
  [{ retry_after: 35 }, { "retry-after": "3" }, 35_000],
  [undefined, { "retry-after": "3" }, 3000],
  [{ retry_after: "x" }, { "retry-after": "3" }, 3000],
  [{ retry_after: -4 }, {}, 1000],
  [{ retry_after: 1e12 }, {}, 86_400_000],
  [undefined, {}, undefined],
])("a 429 with parameters %j and headers %j pauses for %p ms", (parameters, headers, retryAfterMs) => {
  const result = classifyAnswer(answer(429, refusal(429, "Too Many Requests", parameters), headers), TELEGRAM_ANSWERS);
  expect(result).toEqual({
    outcome: "retryable",
    status: 429,
    detail: "Telegram answered 429 Too Many Requests",
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
});

test("a message is plain text without a link preview; the token is only in the path", async () => {
  await using server = serve(() => Response.json(DONE));
  const text = "*bold* <b>&amp;</b> [x](y)";
  const result = await telegramAt(server.url).send({ ...MESSAGE, text }, OPTIONS);
  expect(result).toEqual({ outcome: "delivered", status: 200, networkId: "42" });
  expect(server.requests.map(({ path }) => path)).toEqual([`/bot${TOKEN}/sendMessage`]);
  expect(JSON.parse(server.requests[0]?.body ?? "")).toEqual({
    chat_id: "-100",
    text,
    link_preview_options: { is_disabled: true },
  });
});

describe("a text from a visitor", () => {
  test.each([
    "@channel_owner",
    "Mozilla/5.0 (@owner; @o_2)",
    "é@owner",
    "\u200b@owner",
    "[@owner](tg://user?id=7)",
    "owner@example.com",
    "/ban@admin_bot 7",
    "a /stop",
    "@@owner//ban",
    "https://@owner",
    "https://shop.example/@owner/-/ban",
  ])("mentions no member with the user agent %j, which shows unchanged", async (userAgent) => {
    await using sandbox = await startSandbox();
    const baseUrl = sandbox.urls.telegram;
    const channel = createTelegramChannel({
      botToken: secret(sandbox.credentials.telegramBotToken),
      chatId: sandbox.credentials.telegramChatId,
      baseUrl,
      safeFetch: safeFetchTo(baseUrl),
    });
    const dispatch = { ...CLICK, userAgent, shortCode: userAgent, domain: userAgent };
    expect(await channel.send(dispatch, OPTIONS)).toMatchObject({ outcome: "delivered" });
    const [message] = sandbox.telegram.messages.kept;
    expect(message?.marks).toEqual([]);
    const plain = userAgent.replaceAll("\u200b", "");
    expect(message?.shown.replaceAll("%40", "@")).toContain(`User agent: ${plain}\n`);
  });

  test("keeps an address with @ usable", () => {
    expect(telegramText("see https://video.example/@owner?x=1 of @owner")).toBe(
      "see https://video.example/%40owner?x=1 of @\u2060owner",
    );
  });

  test("the sandbox recognises a mention and a bot command", () => {
    expect(renderTelegram("hi @owner, /stop! https://x.example/@owner a@b_c é@owner")).toEqual({
      text: "hi @owner, /stop! https://x.example/@owner a@b_c é@owner",
      marks: ["mention", "bot_command"],
    });
  });
});

test("a click is announced without the visitor's address", async () => {
  await using server = serve(() => Response.json(DONE));
  await telegramAt(server.url).send(CLICK, OPTIONS);
  expect(server.requests[0]?.body).toContain("go.example.com/autumn");
  expect(server.requests[0]?.body).not.toContain(CLICK.ip);
});

test("a text of 4,096 units is sent whole; a longer one is cut between characters", async () => {
  await using server = serve(() => Response.json(DONE));
  const channel = telegramAt(server.url);
  const texts = ["a".repeat(4096), `${"a".repeat(4094)}😀😀`];
  for (const text of texts) await channel.send({ ...MESSAGE, text }, OPTIONS);
  const sent = server.requests.map(({ body }) => (JSON.parse(body) as { text: string }).text);
  expect(sent).toEqual(["a".repeat(4096), `${"a".repeat(4094)}…`]);
});

describe("a group that became a supergroup", () => {
  const MIGRATED = refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", {
    migrate_to_chat_id: -1001234567890,
  });

  test("receives this and later messages under its new id", async () => {
    await using server = serve(({ body }) =>
      body.includes('"-100"') ? Response.json(MIGRATED, { status: 400 }) : Response.json(DONE),
    );
    const channel = telegramAt(server.url);
    expect((await channel.send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
    expect((await channel.send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
    const chats = server.requests.map(({ body }) => (JSON.parse(body) as { chat_id: string }).chat_id);
    expect(chats).toEqual(["-100", "-1001234567890", "-1001234567890"]);
  });

  test("is followed only once", async () => {
    await using server = serve(() => Response.json(MIGRATED, { status: 400 }));
    const result = await telegramAt(server.url).send(MESSAGE, OPTIONS);
    expect(result).toMatchObject({ outcome: "refused", channel: true });
    expect(server.requests).toHaveLength(2);
  });

  test("is in doubt if the second request is lost", async () => {
    let calls = 0;
    await using server = await serveRaw((socket) => {
      const body = JSON.stringify(MIGRATED);
      if (++calls > 1) return socket.resetAndDestroy();
      return socket.end(
        `HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    expect((await telegramAt(server.url).send(MESSAGE, OPTIONS)).outcome).toBe("in_doubt");
    expect(calls).toBe(2);
  });
});

test("a call without an answer is in doubt; a refused connection is retryable", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  for (const url of [silent.url, broken.url]) {
    expect((await telegramAt(url).send(MESSAGE, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("in_doubt");
  }
  expect((await telegramAt(await deadUrl()).send(MESSAGE, OPTIONS)).outcome).toBe("retryable");
});

describe("the check", () => {
  test("reads the bot, then the chat", async () => {
    await using server = serve(() => Response.json({ ok: true, result: {} }));
    expect((await telegramAt(server.url).check(1000)).ok).toBe(true);
    expect(server.requests.map(({ path }) => path)).toEqual([`/bot${TOKEN}/getMe`, `/bot${TOKEN}/getChat`]);
  });

  test.each([
    ["getMe", 401, "Unauthorized", "TELEGRAM_BOT_TOKEN"],
    ["getChat", 400, "Bad Request: chat not found", "TELEGRAM_CHAT_ID"],
  ])("names the setting that %s refuses", async (method, status, words, setting) => {
    await using server = serve(({ path }) =>
      path.endsWith(method)
        ? Response.json(refusal(status, words), { status })
        : Response.json({ ok: true, result: {} }),
    );
    const checked = await telegramAt(server.url).check(1000);
    expect(checked).toEqual({ ok: false, detail: `Telegram answered ${status} ${words}: check ${setting}` });
  });
});
