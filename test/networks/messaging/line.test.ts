// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createLineChannel, LINE_ANSWERS } from "../../../src/networks/messaging/line.ts";
import type { Dispatch, DispatchResult } from "../../../src/networks/network.ts";
import { refusalsOf, type RefusalKind } from "../../../sandbox/refusals.ts";
import { startSandbox } from "../../../sandbox/sandbox.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const TOKEN = "line-token";
const SENT = { sentMessages: [{ id: "461230966842064897", quoteToken: "IStG5h1Tz7b" }] };
const DIGEST = { kind: "digest", id: MESSAGE.id, time: MESSAGE.time, clicks: 2, bots: 0, links: [] } satisfies Dispatch;

function lineAt(baseUrl: string, { token = TOKEN, to = "U1" } = {}) {
  return createLineChannel({ accessToken: secret(token), to, baseUrl, safeFetch: safeFetchTo(baseUrl) });
}

const refusal = (message: string, property?: string) => ({
  message,
  ...(property === undefined ? {} : { details: [{ message: "May not be empty", property }] }),
});

test.each<[number, object | string, boolean]>([
  [400, refusal("The request body has 1 error(s)", "messages[0].text"), false],
  [400, refusal("The request body has 1 error(s)", "to"), true],
  [400, refusal("The property, 'to', in the request body is invalid (line: -, column: -)"), true],
  [400, refusal("Failed to send messages"), true],
  [400, "", false],
  [401, refusal("Authentication failed due to the following reason: invalid token."), true],
  [403, refusal("Access to this API is not available for your account"), true],
  [404, refusal("Not found"), true],
  [410, "", false],
  [413, "", false],
  [429, refusal("You have reached your monthly limit."), true],
])("LINE's answer %i %j refuses the whole channel: %p", (status, body, channel) => {
  for (const deduplicates of [true, false]) {
    expect(classifyAnswer(answer(status, body), LINE_ANSWERS, deduplicates)).toMatchObject({
      outcome: "refused",
      status,
      channel,
    });
  }
});

test.each<[number, object | string, DispatchResult["outcome"], DispatchResult["outcome"]]>([
  [200, SENT, "delivered", "delivered"],
  [200, {}, "retryable", "in_doubt"],
  [200, { sentMessages: [] }, "retryable", "in_doubt"],
  [200, "<html>", "retryable", "in_doubt"],
  [204, "", "retryable", "in_doubt"],
  [408, "", "retryable", "in_doubt"],
  [409, { message: "The retry key is already accepted", ...SENT }, "delivered", "delivered"],
  [409, "", "delivered", "delivered"],
  [429, refusal("The API rate limit has been exceeded. Try again later."), "retryable", "retryable"],
  [500, refusal("Internal Server Error"), "retryable", "in_doubt"],
  [502, "<html>", "retryable", "in_doubt"],
])("LINE's answer %i %j is %s, and without deduplication %s", (status, body, known, unknown) => {
  expect(classifyAnswer(answer(status, body), LINE_ANSWERS, true).outcome).toBe(known);
  expect(classifyAnswer(answer(status, body), LINE_ANSWERS, false).outcome).toBe(unknown);
});

test("the result has LINE's words, the message's id and the pause", () => {
  const classify = (status: number, body: object, headers = {}) =>
    classifyAnswer(answer(status, body, headers), LINE_ANSWERS, true);
  const delivered = { outcome: "delivered", networkId: "461230966842064897" } as const;
  expect(classify(200, SENT)).toEqual({ ...delivered, status: 200 });
  expect(classify(409, SENT)).toEqual({ ...delivered, status: 409 });
  expect(classify(429, refusal("Try again later."), { "retry-after": "7" })).toEqual({
    outcome: "retryable",
    status: 429,
    detail: "LINE answered 429 Try again later.",
    retryAfterMs: 7000,
  });
});

test("a message is one text with its id as the retry key", async () => {
  await using server = serve(() => Response.json(SENT));
  expect((await lineAt(server.url).send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
  const [request] = server.requests;
  expect([request?.method, request?.path]).toEqual(["POST", "/v2/bot/message/push"]);
  expect(request?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
  expect(request?.headers.get("x-line-retry-key")).toBe(MESSAGE.id);
  expect(JSON.parse(request?.body ?? "")).toEqual({ to: "U1", messages: [{ type: "text", text: MESSAGE.text }] });
});

test("a text of 5,000 units is sent whole; a longer one is cut between characters", async () => {
  await using server = serve(() => Response.json(SENT));
  const channel = lineAt(server.url);
  for (const text of ["a".repeat(5000), `${"a".repeat(4998)}😀😀`]) await channel.send({ ...MESSAGE, text }, OPTIONS);
  const sent = server.requests.map(({ body }) => (JSON.parse(body) as { messages: { text: string }[] }).messages);
  expect(sent.map(([message]) => message?.text)).toEqual(["a".repeat(5000), `${"a".repeat(4998)}…`]);
});

test("a click without an answer is retryable, a digest is in doubt", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  for (const { url } of [silent, broken]) {
    const channel = lineAt(url);
    expect((await channel.send(CLICK, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("retryable");
    expect((await channel.send(DIGEST, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("in_doubt");
  }
  expect((await lineAt(await deadUrl()).send(DIGEST, OPTIONS)).outcome).toBe("retryable");
});

test("the credential changes with the recipient and with the token", () => {
  const marks = [{}, { to: "U2" }, { token: "other" }].map((more) => lineAt("http://127.0.0.1:1", more).credential);
  expect(new Set(marks.map((mark) => mark.reveal())).size).toBe(3);
});

describe("the check", () => {
  test("reads the account's profile", async () => {
    await using server = serve(() => Response.json({ userId: "U0" }));
    expect((await lineAt(server.url).check(1000)).ok).toBe(true);
    expect(server.requests[0]).toMatchObject({ method: "GET", path: "/v2/bot/info" });
    expect(server.requests[0]?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
  });

  test("names the refused setting, and fails if LINE does not listen", async () => {
    await using server = serve(() => Response.json(refusal("Authentication failed"), { status: 401 }));
    expect(await lineAt(server.url).check(1000)).toEqual({
      ok: false,
      detail: "LINE answered 401 Authentication failed: check LINE_CHANNEL_ACCESS_TOKEN",
    });
    expect((await lineAt(await deadUrl()).check(1000)).ok).toBe(false);
  });
});

describe("the sandbox's LINE", () => {
  const HOUR_MS = 3_600_000;

  async function sandboxed() {
    const sandbox = await startSandbox({ clock: () => NOW });
    const { clock, line: state } = sandbox;
    const url = sandbox.urls.line;
    const channel = lineAt(url, { token: state.accessToken, to: state.to });
    const send = async (more: { id?: string; text?: string } = {}) => channel.send({ ...MESSAGE, ...more }, OPTIONS);
    return { clock, state, url, channel, send, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
  }

  test("accepts a message once, however often it is sent within a day", async () => {
    await using line = await sandboxed();
    const first = await line.send();
    expect(first).toMatchObject({ outcome: "delivered", status: 200 });
    line.clock.advance(24 * HOUR_MS - 1);
    expect(await line.send()).toEqual({ ...first, status: 409 } as DispatchResult);
    expect(line.state.messages.kept.map(({ text }) => text)).toEqual([MESSAGE.text]);
    line.clock.advance(1);
    expect(await line.send()).toMatchObject({ outcome: "delivered", status: 200 });
    expect(line.state.messages.total).toBe(2);
  });

  test("rejects a wrong token, recipient, key or text", async () => {
    await using line = await sandboxed();
    const { state, url } = line;
    const at = (more: object) => lineAt(url, { token: state.accessToken, to: state.to, ...more });
    expect(await at({ token: "other" }).send(MESSAGE, OPTIONS)).toMatchObject({ status: 401, channel: true });
    expect(await at({ to: "U404" }).send(MESSAGE, OPTIONS)).toMatchObject({ status: 400, channel: true });
    expect(await line.send({ id: "no-uuid" })).toMatchObject({ status: 400, channel: false });
    expect(await line.send({ text: "" })).toMatchObject({ status: 400, channel: false });
    const push = async (body: object | string) => {
      const headers = { authorization: `Bearer ${state.accessToken}` };
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return (await fetch(`${url}/v2/bot/message/push`, { method: "POST", headers, body: text })).status;
    };
    const { to } = state;
    const long = { type: "text", text: "a".repeat(5001) };
    for (const bad of [
      "{",
      {},
      { to, messages: [] },
      { to, messages: [long] },
      { to, messages: [{ type: "x", text: "a" }] },
    ]) {
      expect(await push(bad)).toBe(400);
    }
    expect(state.messages.total).toBe(0);
    expect((await line.channel.check(1000)).ok).toBe(true);
    expect((await at({ token: "other" }).check(1000)).ok).toBe(false);
  });

  test("limits requests per second and messages per month", async () => {
    await using line = await sandboxed();
    line.state.limit = 1;
    line.state.quota = 1;
    const ids = [1, 2, 3].map((nth) => MESSAGE.id.replace(/.$/, String(nth)));
    expect(await line.send({ id: ids[0] ?? "" })).toMatchObject({ outcome: "delivered" });
    expect(await line.send({ id: ids[1] ?? "" })).toMatchObject({ outcome: "retryable", status: 429 });
    line.clock.advance(1000);
    expect(await line.send({ id: ids[2] ?? "" })).toEqual({
      outcome: "refused",
      status: 429,
      detail: "LINE answered 429 You have reached your monthly limit.",
      channel: true,
    });
  });

  test.each<[RefusalKind, object]>([
    ["429", { outcome: "retryable", status: 429, retryAfterMs: 3000 }],
    ["500", { outcome: "retryable", status: 500 }],
    ["502_html", { outcome: "retryable", status: 502 }],
    ["token_revoked", { outcome: "refused", status: 401, channel: true }],
    ["monthly_limit", { outcome: "refused", status: 429, channel: true }],
  ])("answers the fault %s as LINE would", async (kind, result) => {
    await using server = serve(
      () => refusalsOf("line")[kind]?.({ retryAfter: 3, path: "", now: NOW }) ?? Response.error(),
    );
    expect(await lineAt(server.url).send(MESSAGE, OPTIONS)).toMatchObject(result);
  });
});
