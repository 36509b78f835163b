// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import {
  createGoogleChatChannel,
  GOOGLE_CHAT_ANSWERS,
  googleChatText,
} from "../../../src/networks/chat/google-chat.ts";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { renderGoogleChat } from "../../../sandbox/render-chat-markup.ts";
import { secret } from "../../../src/platform/secret.ts";
import { MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, safeFetchTo, serve } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const CREATED = { name: "spaces/AAA/messages/t.1", text: "x", thread: { name: "spaces/AAA/threads/t" } };

function googleChatAt(url: string) {
  const webhookUrl = secret(`${url}/v1/spaces/AAA/messages?key=k&token=t%3D`);
  return createGoogleChatChannel({ webhookUrl, safeFetch: safeFetchTo(url) });
}

const failed = (status: string, message = "token secretsecretsecretsecret", reason?: string) => ({
  error: { code: 1, status, message, ...(reason === undefined ? {} : { details: [{ "@type": "x" }, { reason }] }) },
});

test.each<[number, object | string, DispatchResult["outcome"] | "stopped"]>([
  [200, CREATED, "delivered"],
  [200, {}, "in_doubt"],
  [200, { name: "x".repeat(300) }, "in_doubt"],
  [200, "<html>", "in_doubt"],
  [204, "", "in_doubt"],
  [400, failed("INVALID_ARGUMENT"), "refused"],
  [400, failed("INVALID_ARGUMENT", "API key not valid.", "API_KEY_INVALID"), "stopped"],
  [400, failed("INVALID_ARGUMENT", "x", "OTHER"), "refused"],
  [400, "", "refused"],
  [401, failed("UNAUTHENTICATED"), "stopped"],
  [403, failed("PERMISSION_DENIED"), "stopped"],
  [404, failed("NOT_FOUND"), "stopped"],
  [408, "", "in_doubt"],
  [413, "", "refused"],
  [429, failed("RESOURCE_EXHAUSTED"), "retryable"],
  [500, failed("INTERNAL"), "in_doubt"],
  [503, failed("UNAVAILABLE"), "in_doubt"],
])("Google Chat's answer %i %j is classified as %s", (status, body, verdict) => {
  const result = classifyAnswer(answer(status, body), GOOGLE_CHAT_ANSWERS);
  expect(result.outcome === "refused" && result.channel ? "stopped" : result.outcome).toBe(verdict);
  expect(JSON.stringify(result)).not.toContain("secretsecret");
});

test("the result has the message's name, and a pause only if a 429 names one", () => {
  expect(classifyAnswer(answer(200, CREATED), GOOGLE_CHAT_ANSWERS)).toMatchObject({ networkId: CREATED.name });
  const limited = { outcome: "retryable", status: 429, detail: "Google Chat answered 429" } as const;
  expect(classifyAnswer(answer(429), GOOGLE_CHAT_ANSWERS)).toEqual(limited);
  expect(classifyAnswer(answer(429, "", { "retry-after": "5" }), GOOGLE_CHAT_ANSWERS)).toEqual({
    ...limited,
    retryAfterMs: 5000,
  });
});

test("a message is posted to the webhook address with its query", async () => {
  await using server = serve(() => Response.json(CREATED));
  expect((await googleChatAt(server.url).send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
  const [request] = server.requests;
  expect([request?.method, request?.path]).toEqual(["POST", "/v1/spaces/AAA/messages"]);
  expect(Object.fromEntries(request?.query ?? [])).toEqual({ key: "k", token: "t=" });
  expect(JSON.parse(request?.body ?? "")).toEqual({ text: "hello\nthere" });
});

test.each<[number, object | string, boolean]>([
  [400, failed("INVALID_ARGUMENT", "Message cannot be empty."), true],
  [400, failed("INVALID_ARGUMENT", "API key not valid."), false],
  [403, failed("PERMISSION_DENIED", "The API is called without a valid token: it is empty"), false],
  [404, failed("NOT_FOUND"), false],
  [200, CREATED, false],
  [500, "", false],
])("the check passes after an answer of %i %j: %p", async (status, body, ok) => {
  await using server = serve(() => Response.json(body, { status }));
  expect((await googleChatAt(server.url).check(1000)).ok).toBe(ok);
  expect(server.requests[0]?.body).toBe("{}");
});

describe("a text", () => {
  test.each([
    ["nothing to do, 5 * 3 < 20", "nothing to do, 5 * 3 < 20"],
    [
      "*b* _i_ ~s~ `c`",
      "*b* _i_ ~s~ `c`".replaceAll("*", "∗").replaceAll("_", "ˍ").replaceAll("~", "∼").replaceAll("`", "ˋ"),
    ],
    ["<users/all>", "‹users/all›"],
    ["<https://evil.example|bank>", "‹https://evil.example|bank›"],
    ["a > b", "a > b"],
    ["a\n* b\n- c", "a\n∗ b\n‐ c"],
    ["> said", "› said"],
    ["https://e.example/a_b_c?d=*e*", "https://e.example/a_b_c?d=*e*"],
  ])("%j is escaped as %j", (text, written) => {
    expect(googleChatText(text)).toBe(written);
  });

  test("keeps its length and contains no markup", () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom("*", "_", "~", "`", "<", ">", "|", " ", "\n", "- ", "> ", "<users/all>"),
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 40 }).map((parts) => parts.join("")),
        (text) => {
          const written = googleChatText(text);
          expect(written.length).toBe(text.length);
          expect(renderGoogleChat(written)).toEqual({ text: written, marks: [] });
        },
      ),
      { numRuns: 500 },
    );
  });

  test("stays below 32,000 bytes as JSON, even with wide characters", () => {
    for (const part of ["€", "😀", "\\", "\n", "a"]) {
      const text = googleChatText(`-${part.repeat(20_000)}`);
      expect(Buffer.byteLength(JSON.stringify({ text }))).toBeLessThan(32_000);
      expect(text.isWellFormed()).toBe(true);
    }
  });
});
