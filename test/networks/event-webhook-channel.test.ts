// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { makeEvent, type Recorded } from "../../events/event-types-and-codec.ts";
import type { Dispatch, DispatchResult } from "../../src/networks/network.ts";
import { createStandardWebhookChannel, type StandardWebhookOptions } from "../../src/networks/event-webhook-channel.ts";
import { secret } from "../../src/platform/secret.ts";
import { deadUrl, safeFetchTo, serve, serveRaw, type Seen } from "../harness/in-process/local-test-servers.ts";
import { CLICK } from "./sample-dispatches.ts";

const SECRET = `whsec_${Buffer.from("a secret of exactly 32 bytes: 42").toString("base64")}`;
const OTHER_SECRET = `whsec_${Buffer.from("another one that takes its place").toString("base64")}`;
const PATH = "/hooks/canary?key=canary";

const RECORDED = {
  ...makeEvent(
    "LinkClicked",
    "019a9f00-0000-7000-8000-000000000001",
    {
      event: "click",
      domain: "go.example",
      short_code: "müßig",
      original_url: "https://shop.example/",
      ip: "203.0.113.77",
      bot: false,
      channels: ["ads"],
    },
    { caller: "shop", request_id: "r1" },
  ),
  position: 7,
  stream: "link-go.example/müßig",
  version: 3,
  time: "2026-11-20T10:00:00.750Z",
  hash: "ab",
} as Recorded;
const EVENT: Dispatch = { kind: "event", id: RECORDED.id, time: RECORDED.time, event: RECORDED };

/**
 * Options of the channel, with the machine's time: the library that verifies the requests compares their timestamps
 * with it.
 */
const OPTIONS = { timeoutMs: 60_000, now: Date.now() };

function webhookAt(url: string, secrets = SECRET, more: Partial<StandardWebhookOptions> = {}) {
  const safeFetch = safeFetchTo(url);
  return createStandardWebhookChannel({
    url: secret(url + PATH),
    secrets: secret(secrets),
    isInOrder: false,
    name: "webhook",
    filter: undefined,
    headers: new Map(),
    safeFetch,
    ...more,
  });
}

const verified = (key: string, { body, headers }: Seen): unknown =>
  new Webhook(key).verify(body, Object.fromEntries(headers));

async function resultOf(answer: () => Response): Promise<DispatchResult> {
  await using receiver = serve(answer);
  return await webhookAt(receiver.url).send(EVENT, OPTIONS);
}

test("a receiver with the standardwebhooks library verifies a delivered event", async () => {
  await using receiver = serve(() => new Response(null, { status: 204 }));
  expect(await webhookAt(receiver.url).send(EVENT, OPTIONS)).toEqual({ outcome: "delivered", status: 204 });
  const [seen] = receiver.requests as [Seen];
  expect([seen.method, seen.path, seen.query.get("key")]).toEqual(["POST", "/hooks/canary", "canary"]);
  expect(verified(SECRET, seen)).toEqual({ type: "LinkClicked", timestamp: RECORDED.time, data: { ...RECORDED } });
  const about = ["content-type", "webhook-id", "webhook-timestamp"].map((name) => seen.headers.get(name));
  expect(about).toEqual(["application/json", RECORDED.id, String(Math.floor(OPTIONS.now / 1000))]);
});

test("a receiver with svix's library verifies a delivered event", async () => {
  await using receiver = serve(() => new Response());
  await webhookAt(receiver.url).send(EVENT, OPTIONS);
  const [{ body, headers }] = receiver.requests as [Seen];
  const svix = new SvixWebhook(SECRET);
  expect(() => svix.verify(body, Object.fromEntries(headers))).not.toThrow();
  expect(() => svix.verify(body.replace("shop.example", "evil.example"), Object.fromEntries(headers))).toThrow();
});

test("configured headers are in each request and in the check", async () => {
  await using receiver = serve(() => new Response());
  const headers = new Map([
    ["authorization", secret("Bearer canary")],
    ["x-tenant", secret("7")],
  ]);
  const webhook = webhookAt(receiver.url, SECRET, { headers });
  await webhook.send(EVENT, OPTIONS);
  await webhook.check(60_000);
  const seen = receiver.requests.map(({ headers: all }) => [all.get("authorization"), all.get("x-tenant")]);
  expect(seen).toEqual([
    ["Bearer canary", "7"],
    ["Bearer canary", "7"],
  ]);
  expect(verified(SECRET, (receiver.requests as [Seen])[0])).toMatchObject({ type: "LinkClicked" });
  expect(Bun.inspect(webhook, { depth: 9 })).not.toContain("canary");
});

test("the credential changes with a configured header", () => {
  const credential = (value: string) =>
    webhookAt("http://127.0.0.1:1", SECRET, { headers: new Map([["x-tenant", secret(value)]]) }).credential.reveal();
  expect(credential("7")).not.toBe(credential("8"));
  expect(webhookAt("http://127.0.0.1:1").credential.reveal()).toBe(`http://127.0.0.1:1${PATH}\n${SECRET}`);
});

test("the filter sees an event as it is posted", () => {
  const at = (filter: string) => webhookAt("http://127.0.0.1:1", SECRET, { filter });
  expect(at("type == 'LinkClicked' && data.data.short_code == 'müßig'").filter?.(RECORDED)).toBe(true);
  expect(at("timestamp != data.time").filter?.(RECORDED)).toBe(false);
  expect(webhookAt("http://127.0.0.1:1").filter).toBeUndefined();
});

test("a receiver rejects a changed event and another secret's signature", async () => {
  await using receiver = serve(() => new Response());
  await webhookAt(receiver.url).send(EVENT, OPTIONS);
  const [seen] = receiver.requests as [Seen];
  expect(() => verified(SECRET, { ...seen, body: seen.body.replace("shop.example", "evil.example") })).toThrow();
  expect(() => verified(OTHER_SECRET, seen)).toThrow();
  const headers = new Headers(seen.headers);
  headers.set("webhook-id", "019a9f00-0000-7000-8000-000000000002");
  expect(() => verified(SECRET, { ...seen, headers })).toThrow();
});

test("receivers of both secrets verify an event during a rotation", async () => {
  await using receiver = serve(() => new Response());
  await webhookAt(receiver.url, `${SECRET} ${OTHER_SECRET}`).send(EVENT, OPTIONS);
  const [seen] = receiver.requests as [Seen];
  expect(verified(SECRET, seen)).toEqual(verified(OTHER_SECRET, seen));
});

test("a repeat has the same id and its own timestamp", async () => {
  await using receiver = serve(() => new Response());
  const webhook = webhookAt(receiver.url);
  await webhook.send(EVENT, OPTIONS);
  await webhook.send(EVENT, { ...OPTIONS, now: OPTIONS.now + 10_000 });
  const [first, second] = receiver.requests.map(({ headers }) => headers) as [Headers, Headers];
  expect(second.get("webhook-id")).toBe(first.get("webhook-id"));
  expect(Number(second.get("webhook-timestamp")) - Number(first.get("webhook-timestamp"))).toBe(10);
});

const retryable = (status: number) => ({
  outcome: "retryable" as const,
  status,
  detail: `the receiver answered ${status}`,
});

test.each<[number, Record<string, string>, DispatchResult]>([
  [200, {}, { outcome: "delivered", status: 200 }],
  [202, {}, { outcome: "delivered", status: 202 }],
  [299, {}, { outcome: "delivered", status: 299 }],
  [304, {}, { ...retryable(304), mayHaveArrived: true }],
  [400, {}, { ...retryable(400), mayHaveArrived: true }],
  [401, {}, { ...retryable(401), mayHaveArrived: true }],
  [404, {}, { ...retryable(404), mayHaveArrived: true }],
  [410, {}, { outcome: "refused", status: 410, detail: "the receiver answered 410", channel: true }],
  [429, {}, retryable(429)],
  [429, { "retry-after": "30" }, { ...retryable(429), retryAfterMs: 30_000 }],
  [500, {}, { ...retryable(500), mayHaveArrived: true }],
  [503, { "retry-after": "120" }, { ...retryable(503), retryAfterMs: 120_000, mayHaveArrived: true }],
])("a receiver's answer %i with headers %j is classified", async (status, headers, result) => {
  expect(await resultOf(() => new Response(null, { status, headers }))).toEqual(result);
});

test("a redirect is not followed, and the event is retryable", async () => {
  await using elsewhere = serve(() => new Response());
  const result = await resultOf(() => Response.redirect(elsewhere.url));
  expect(result).toMatchObject({ outcome: "retryable", mayHaveArrived: true });
  expect(elsewhere.requests).toEqual([]);
});

test("an event is retryable if its receiver is silent, hangs up or does not listen", async () => {
  await using silent = await serveRaw(() => undefined);
  const late = await webhookAt(silent.url).send(EVENT, { ...OPTIONS, timeoutMs: 50 });
  expect(late).toMatchObject({ outcome: "retryable", mayHaveArrived: true });
  await using rude = await serveRaw((socket) => socket.destroy());
  const reset = await webhookAt(rude.url).send(EVENT, OPTIONS);
  expect(reset).toMatchObject({ outcome: "retryable", mayHaveArrived: true });
  const gone = await webhookAt(await deadUrl()).send(EVENT, OPTIONS);
  expect(gone).toMatchObject({ outcome: "retryable" });
  expect(gone).not.toHaveProperty("mayHaveArrived");
});

test("results show neither the receiver's words nor address, secret or event", async () => {
  await using receiver = serve(({ body }) => new Response(`${body} ${SECRET}`, { status: 500 }));
  const webhook = webhookAt(receiver.url);
  const said = JSON.stringify([await webhook.send(EVENT, OPTIONS), await webhook.check(60_000)]);
  expect(said + Bun.inspect(webhook, { depth: 9 })).not.toMatch(/canary|whsec_|203\.0\.113|shop\.example/);
});

test("the check posts nothing and fails only on 410 or a refused connection", async () => {
  let status = 405;
  await using receiver = serve(() => new Response(null, { status }));
  expect(await webhookAt(receiver.url).check(60_000)).toMatchObject({ ok: true });
  status = 410;
  expect(await webhookAt(receiver.url).check(60_000)).toMatchObject({ ok: false });
  expect(receiver.requests.map(({ method }) => method)).toEqual(["GET", "GET"]);
  expect(await webhookAt(await deadUrl()).check(60_000)).toMatchObject({ ok: false });
});

test("sending a click throws, because a webhook delivers only events", async () => {
  const sent = webhookAt("http://127.0.0.1:1").send(CLICK, OPTIONS);
  expect(String(await sent.catch((fault: unknown) => fault))).toContain("delivers no click");
});
