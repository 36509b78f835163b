// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createSlackChannel, SLACK_ANSWERS, slackMessage } from "../../../src/networks/chat/slack.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOTIFICATION, NOW, TEST } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };

function slackAt(url: string) {
  return createSlackChannel({ webhookUrl: secret(`${url}/services/T0/B0/secret`), safeFetch: safeFetchTo(url) });
}

interface Payload {
  text: string;
  blocks: { text: { type: string; text: string } }[];
}

function payload(text: string): Payload {
  return JSON.parse(slackMessage(text)) as Payload;
}

const shown = ({ blocks }: Payload): string =>
  blocks
    .map((block) => block.text.text)
    .join("")
    .replace(/&(lt|gt|amp);/g, (_escape, name: string) => ({ lt: "<", gt: ">" })[name] ?? "&");

test.each<[number, string, Record<string, string>, DispatchResult]>([
  [200, "ok", {}, { outcome: "delivered", status: 200 }],
  [200, "ok\n", {}, { outcome: "delivered", status: 200 }],
  [200, "", {}, { outcome: "in_doubt", status: 200, detail: "Slack answered 200" }],
  [200, "<html>Please log in", {}, { outcome: "in_doubt", status: 200, detail: "Slack answered 200" }],
  [204, "", {}, { outcome: "in_doubt", status: 204, detail: "Slack answered 204" }],
  [304, "", {}, { outcome: "in_doubt", status: 304, detail: "Slack answered 304" }],
  [
    400,
    "invalid_payload",
    {},
    { outcome: "refused", status: 400, detail: "Slack answered 400 invalid_payload", channel: false },
  ],
  [
    400,
    "invalid_blocks",
    {},
    { outcome: "refused", status: 400, detail: "Slack answered 400 invalid_blocks", channel: false },
  ],
  [400, "no_text", {}, { outcome: "refused", status: 400, detail: "Slack answered 400 no_text", channel: false }],
  [
    400,
    "user_not_found",
    {},
    { outcome: "refused", status: 400, detail: "Slack answered 400 user_not_found", channel: true },
  ],
  [400, "It is <b>me</b>", {}, { outcome: "refused", status: 400, detail: "Slack answered 400", channel: false }],
  [401, "", {}, { outcome: "refused", status: 401, detail: "Slack answered 401", channel: true }],
  [
    403,
    "action_prohibited",
    {},
    { outcome: "refused", status: 403, detail: "Slack answered 403 action_prohibited", channel: true },
  ],
  [
    403,
    "invalid_token",
    {},
    { outcome: "refused", status: 403, detail: "Slack answered 403 invalid_token", channel: true },
  ],
  [
    404,
    "channel_not_found",
    {},
    { outcome: "refused", status: 404, detail: "Slack answered 404 channel_not_found", channel: true },
  ],
  [404, "no_service", {}, { outcome: "refused", status: 404, detail: "Slack answered 404 no_service", channel: true }],
  [404, "no_team", {}, { outcome: "refused", status: 404, detail: "Slack answered 404 no_team", channel: true }],
  [408, "", {}, { outcome: "in_doubt", status: 408, detail: "Slack answered 408" }],
  [
    410,
    "channel_is_archived",
    {},
    { outcome: "refused", status: 410, detail: "Slack answered 410 channel_is_archived", channel: true },
  ],
  [413, "", {}, { outcome: "refused", status: 413, detail: "Slack answered 413", channel: false }],
  [
    429,
    "rate_limited",
    { "retry-after": "30" },
    { outcome: "retryable", status: 429, detail: "Slack answered 429 rate_limited", retryAfterMs: 30_000 },
  ],
  [
    429,
    "",
    { "retry-after": "-1" },
    { outcome: "retryable", status: 429, detail: "Slack answered 429", retryAfterMs: 1000 },
  ],
  [
    429,
    "",
    { "retry-after": "999999" },
    { outcome: "retryable", status: 429, detail: "Slack answered 429", retryAfterMs: 86_400_000 },
  ],
  [429, "", { "retry-after": "soon" }, { outcome: "retryable", status: 429, detail: "Slack answered 429" }],
  [429, "", {}, { outcome: "retryable", status: 429, detail: "Slack answered 429" }],
  [500, "rollup_error", {}, { outcome: "in_doubt", status: 500, detail: "Slack answered 500 rollup_error" }],
  [503, "", {}, { outcome: "in_doubt", status: 503, detail: "Slack answered 503" }],
])("Slack's answer %i %j with headers %j is classified", (status, body, headers, result) => {
  expect(classifyAnswer(answer(status, body, headers), SLACK_ANSWERS)).toEqual(result);
});

test("a truncated ok is in doubt", () => {
  expect(classifyAnswer({ ...answer(200, "ok"), truncated: true }, SLACK_ANSWERS).outcome).toBe("in_doubt");
});

describe("the message", () => {
  test.each(["<!channel>", "<@U123>", "<https://evil.example|bank>", "<!subteam^S1>", "&lt;!here&gt;", "*_`~[x](y)"])(
    "shows %s unchanged",
    (text) => {
      const message = payload(text);
      expect(JSON.stringify(message)).not.toMatch(/[<>]/);
      expect(shown(message)).toBe(text);
      expect(message.blocks.every((block) => block.text.type === "plain_text")).toBe(true);
    },
  );

  test("turns formatting and unfurling off", () => {
    expect(payload("x")).toMatchObject({ mrkdwn: false, unfurl_links: false, unfurl_media: false });
  });

  test("holds 4,000 characters uncut", () => {
    const text = "word ".repeat(800);
    expect(shown(payload(text))).toBe(text);
  });

  test("stays within Slack's limits without splitting a character or escape", () => {
    const text = fc.array(fc.constantFrom("&", "<", "a", "😀", "é", "\n", " "), { maxLength: 14_000 });
    fc.assert(
      fc.property(text, (characters) => {
        const whole = characters.join("");
        const message = payload(`-${whole}`);
        const pieces = message.blocks.map((block) => block.text.text);
        expect(pieces.length).toBeLessThanOrEqual(3);
        for (const piece of [...pieces, message.text]) {
          expect(piece.length).toBeLessThanOrEqual(3000);
          expect(piece).toBe(piece.toWellFormed());
          expect(piece.replace(/&(amp|lt|gt);/g, "")).not.toMatch(/[&<>]/);
          expect(piece.trim()).not.toBe("");
        }
        expect(pieces.join("").length + message.text.length).toBeLessThan(12_000);
      }),
      { numRuns: 50 },
    );
  });

  test("is cut at 9,000 characters and its fallback at 2,000, ellipsis included", () => {
    const message = payload("a".repeat(10_000));
    expect(message.blocks.map((block) => block.text.text.length)).toEqual([3000, 3000, 3000]);
    expect(message.text).toHaveLength(2000);
  });

  test("has no empty section, which Slack would refuse", () => {
    const message = payload(`x${" ".repeat(7000)}`);
    expect(message.blocks).toHaveLength(1);
  });

  test("ends with an ellipsis when it was cut", () => {
    const message = payload("&".repeat(4000));
    expect(message.blocks.at(-1)?.text.text).toEndWith("&amp;…");
    expect(message.text).toEndWith("&amp;…");
  });
});

describe("the posted text", () => {
  async function posted(dispatch: Parameters<ReturnType<typeof slackAt>["send"]>[0]): Promise<string> {
    await using server = serve(() => new Response("ok"));
    expect((await slackAt(server.url).send(dispatch, OPTIONS)).outcome).toBe("delivered");
    expect(server.requests.map(({ method, path }) => [method, path])).toEqual([["POST", "/services/T0/B0/secret"]]);
    return shown(JSON.parse(server.requests[0]?.body ?? "") as Payload);
  }

  test("shows a click's link but not the visitor's address", async () => {
    const text = await posted(CLICK);
    expect(text).toBe(
      [
        "Link event: click",
        "Link: go.example.com/autumn",
        `Target: ${CLICK.originalUrl}`,
        "User agent: Mozilla/5.0",
        `Time: ${CLICK.time}`,
      ].join("\n"),
    );
    expect(text).not.toContain(CLICK.ip);
  });

  test("gains no line from a value with a line break", async () => {
    const text = await posted({ ...CLICK, userAgent: "x\nTime: never", bot: true });
    expect(text.split("\n")).toHaveLength(5);
    expect(text).toStartWith("Link event: click (by a bot)\n");
  });

  test("names a notification's level and service", async () => {
    expect(await posted(NOTIFICATION)).toBe("[ERROR] backup: disk is full");
  });

  test("shows a message as written and identifies a test", async () => {
    expect(await posted(MESSAGE)).toBe("hello\nthere");
    expect(await posted(TEST)).toContain("reachlog test message");
  });
});

test("a call without an answer is in doubt; a refused connection is retryable", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  for (const url of [silent.url, broken.url]) {
    expect((await slackAt(url).send(MESSAGE, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("in_doubt");
  }
  expect((await slackAt(await deadUrl()).send(MESSAGE, OPTIONS)).outcome).toBe("retryable");
});

test("a webhook outside the allowed origins refuses the whole channel", async () => {
  const webhookUrl = secret("http://127.0.0.1:1/services/x");
  const channel = createSlackChannel({ webhookUrl, safeFetch: safeFetchTo("https://hooks.slack.com") });
  expect(await channel.send(MESSAGE, OPTIONS)).toMatchObject({ outcome: "refused", channel: true });
});

test.each([
  [400, "no_text", true],
  [400, "invalid_payload", true],
  [400, "strange", false],
  [200, "ok", false],
  [403, "invalid_token", false],
  [404, "no_service", false],
  [410, "channel_is_archived", false],
  [500, "", false],
])("the check passes after an answer of %i %j: %p", async (status, body, ok) => {
  await using server = serve(() => new Response(body, { status }));
  expect((await slackAt(server.url).check(1000)).ok).toBe(ok);
  expect(server.requests[0]?.body).toBe("{}");
});
