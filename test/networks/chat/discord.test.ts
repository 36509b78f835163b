// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createDiscordChannel, DISCORD_ANSWERS, discordText } from "../../../src/networks/chat/discord.ts";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { renderDiscord } from "../../../sandbox/render-chat-markup.ts";
import { secret } from "../../../src/platform/secret.ts";
import { MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const SENT = { id: "1440000000000000001", type: 0, channel_id: "77" };
const PATH = "/api/webhooks/12/secret";
const CALLED = "/api/v10/webhooks/12/secret";

function discordAt(url: string, query = "") {
  return createDiscordChannel({ webhookUrl: secret(`${url}${PATH}${query}`), safeFetch: safeFetchTo(url) });
}

const refused = (code: number, message = "secret 1234567") => ({ code, message });

test.each<[number, object | string, DispatchResult["outcome"] | "stopped"]>([
  [200, SENT, "delivered"],
  [200, {}, "in_doubt"],
  [200, { id: "x" }, "in_doubt"],
  [200, "<html>", "in_doubt"],
  // The request has no `wait`, so Discord's answer does not show if the message was saved.
  [204, "", "in_doubt"],
  [302, "", "in_doubt"],
  [400, refused(50_035), "refused"],
  [400, refused(50_006), "refused"],
  [400, refused(200_000), "refused"],
  [400, refused(220_001), "stopped"],
  [400, refused(50_083), "stopped"],
  [400, "", "refused"],
  [401, refused(50_027), "stopped"],
  [401, "", "stopped"],
  [403, "<html>", "stopped"],
  [404, refused(10_015), "stopped"],
  [408, "", "in_doubt"],
  [413, "", "refused"],
  [429, { message: "x", retry_after: 0.3, global: false }, "retryable"],
  [429, "error code: 1015", "retryable"],
  [500, refused(0), "in_doubt"],
  [502, "<html>", "in_doubt"],
])("Discord's answer %i %j is classified as %s", (status, body, verdict) => {
  const result = classifyAnswer(answer(status, body), DISCORD_ANSWERS);
  expect(result.outcome === "refused" && result.channel ? "stopped" : result.outcome).toBe(verdict);
  expect(JSON.stringify(result)).not.toContain("1234567");
});

test.each<[object | string, Record<string, string>, number | undefined]>([
  [{ message: "x", retry_after: 1.337 }, { "retry-after": "2" }, 1337],
  [{ message: "x", retry_after: 0.3 }, {}, 1000],
  [{ message: "x", retry_after: 64.57, global: true }, {}, 64_570],
  [{ message: "x" }, { "retry-after": "3" }, 3000],
  ["error code: 1015", { "retry-after": "3600" }, 3_600_000],
  ["error code: 1015", {}, undefined],
])("a 429 with body %j and headers %j pauses for %p ms", (body, headers, ms) => {
  const result = classifyAnswer(answer(429, body, headers), DISCORD_ANSWERS);
  expect(result.outcome === "retryable" ? result.retryAfterMs : "").toBe(ms);
});

test("the result has the message's id, and a pause after the window's last message", () => {
  const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.874" };
  const delivered = { outcome: "delivered", status: 200, networkId: SENT.id } as const;
  expect(classifyAnswer(answer(200, SENT, headers), DISCORD_ANSWERS)).toEqual({ ...delivered, pauseMs: 1874 });
  const more = { ...headers, "x-ratelimit-remaining": "1" };
  expect(classifyAnswer(answer(200, SENT, more), DISCORD_ANSWERS)).toEqual(delivered);
});

test("the request waits until the message is saved, mentions no member and suppresses previews", async () => {
  await using server = serve(() => Response.json(SENT));
  expect((await discordAt(server.url, "?thread_id=34").send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
  const [request] = server.requests;
  expect([request?.method, request?.path]).toEqual(["POST", CALLED]);
  expect(Object.fromEntries(request?.query ?? [])).toEqual({ thread_id: "34", wait: "true" });
  expect(request?.headers.get("user-agent")).toMatch(/^DiscordBot \(reachlog, /);
  expect(JSON.parse(request?.body ?? "")).toEqual({
    content: "hello\nthere",
    allowed_mentions: { parse: [] },
    flags: 4,
  });
});

test.each([
  ["/api/webhooks/12/secret", CALLED],
  ["/api/v6/webhooks/12/secret", CALLED],
  ["/api/v9/webhooks/12/secret", CALLED],
  ["/api/v10/webhooks/12/secret", CALLED],
  ["/proxy/api/webhooks/12/secret", `/proxy${CALLED}`],
])("a webhook address pasted as %s is called as %s", async (pasted, called) => {
  await using server = serve(() => Response.json(SENT));
  const webhookUrl = secret(`${server.url}${pasted}?thread_id=34`);
  const channel = createDiscordChannel({ webhookUrl, safeFetch: safeFetchTo(server.url) });
  await channel.send(MESSAGE, OPTIONS);
  expect(server.requests.map(({ path }) => path)).toEqual([called]);
  // The credential of the channel is the URL as the operator configured it, without what the channel adds.
  expect(channel.credential).toBe(webhookUrl);
});

test("a call without an answer is in doubt; a refused connection is retryable", async () => {
  await using silent = await serveRaw(() => undefined);
  expect((await discordAt(silent.url).send(MESSAGE, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("in_doubt");
  expect((await discordAt(await deadUrl()).send(MESSAGE, OPTIONS)).outcome).toBe("retryable");
});

test("the check reads the webhook and names the wrong setting", async () => {
  await using alive = serve(() => Response.json({ id: "12", type: 1 }));
  expect((await discordAt(alive.url).check(1000)).ok).toBe(true);
  expect(alive.requests.map(({ method, path }) => [method, path])).toEqual([["GET", CALLED]]);
  await using gone = serve(() => Response.json(refused(10_015, "Unknown Webhook"), { status: 404 }));
  expect(await discordAt(gone.url).check(1000)).toEqual({
    ok: false,
    detail: "Discord answered 404, error 10015 Unknown Webhook: check CHAT_WEBHOOK_URL",
  });
});

describe("a text", () => {
  test.each([
    ["nothing to do, 5 + 3 - 2!", "nothing to do, 5 + 3 - 2!"],
    ["*b* _i_ ~~s~~ ||x|| `c`", "\\*b\\* \\_i\\_ \\~\\~s\\~\\~ \\|\\|x\\|\\| \\`c\\`"],
    ["@everyone <@1>", "\\@everyone \\<\\@1\\>"],
    ["[bank](https://evil.example)", "\\[bank\\]\\(https\\://evil.example\\)"],
    ["a\n- b\n1. c\n-# d", "a\n\\- b\n1\\. c\n\\-\\# d"],
    ["  - a", "  \\- a"],
    ["https://e.example/a_b?c=*d* *e*", "https://e.example/a_b?c=*d* \\*e\\*"],
    // Discord would end the address at the bracket and interpret the rest as a mention, so all of it is escaped.
    ["https://e.example/<@1>", "https\\://e.example/\\<\\@1\\>"],
    ["https://e.example/a_b.", "https\\://e.example/a\\_b."],
    ["\\*", "\\\\\\*"],
  ])("%j is escaped as %j", (text, content) => {
    expect(discordText(text)).toBe(content);
  });

  test("renders as it was written, whatever it contains", () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom(..."\\*_~|`<>[]()#@:-+.!/ \n1a".split("")),
      fc.constantFrom("https://e.example/", "<@1>", "@here", "**", "__", "1. ", "- ", "> ", "# ", ":smile:", "<t:1>"),
    );
    const texts = fc.array(part, { maxLength: 60 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        expect(renderDiscord(discordText(text))).toEqual({ text, marks: [] });
      }),
      { numRuns: 500 },
    );
  });

  test("is cut at 2,000 units, without splitting a character or escape or linking half an address", () => {
    expect(discordText("a".repeat(2000))).toBe("a".repeat(2000));
    expect(discordText("a".repeat(2001))).toBe(`${"a".repeat(1999)}…`);
    expect(discordText(`${"a".repeat(1998)}😀😀`)).toBe(`${"a".repeat(1998)}…`);
    expect(discordText("*".repeat(1001))).toBe(`${"\\*".repeat(999)}…`);
    const cut = discordText(`x https://e.example/${"a".repeat(2000)} y`);
    expect(cut).toStartWith("x https\\://e.example/aaa");
    expect(cut).toEndWith("a…");
    expect(cut.length).toBe(2000);
  });

  test("stays within 2,000 units, whatever it contains", () => {
    const part = fc.constantFrom("*", "a", "😀", "é", "\n", " ", "https://e.example/a_b ");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5_000 }), (parts) => {
        const content = discordText(parts.join(""));
        expect(content.length).toBeLessThanOrEqual(2000);
        expect(content.isWellFormed()).toBe(true);
        expect(renderDiscord(content).marks).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });
});
