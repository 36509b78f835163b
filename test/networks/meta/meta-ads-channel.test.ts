// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createMetaChannel } from "../../../src/networks/meta/meta-ads-channel.ts";
import type { Dispatch } from "../../../src/networks/network.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOTIFICATION, NOW, TEST } from "../sample-dispatches.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const DAY_MS = 24 * 60 * 60_000;

function metaAt(baseUrl: string, testEventCode?: string) {
  const accessToken = secret("EAAB-access-token");
  return createMetaChannel({ pixelId: "123456", accessToken, testEventCode, baseUrl, safeFetch: safeFetchTo(baseUrl) });
}

async function sent(dispatch: Dispatch, testEventCode?: string) {
  await using server = serve(() => Response.json({ events_received: 1, fbtrace_id: "A1b" }));
  const result = await metaAt(server.url, testEventCode).send(dispatch, OPTIONS);
  expect(result).toEqual({ outcome: "delivered", status: 200, networkId: "A1b" });
  const [request] = server.requests;
  if (request === undefined || server.requests.length !== 1) throw new Error("one request was expected");
  return { request, body: JSON.parse(request.body) };
}

test("a click is one PageView with the click's time and id", async () => {
  const { request, body } = await sent(CLICK);
  expect([request.method, request.path, request.query.size]).toEqual(["POST", "/v27.0/123456/events", 0]);
  expect(body).toEqual({
    data: [
      {
        event_name: "PageView",
        event_time: 1_795_168_800,
        event_id: CLICK.id,
        event_source_url: CLICK.normalizedUrl,
        action_source: "website",
        user_data: {
          client_user_agent: "Mozilla/5.0",
          client_ip_address: "203.0.113.77",
          fbc: "fb.1.1795168800750.IwAR0_-aB",
        },
      },
    ],
    access_token: "EAAB-access-token",
  });
});

test.each([
  ["https://example.com/?fbclid=AbC", "AbC"],
  ["https://example.com/?x=1&fbclid=AbC", "AbC"],
  ["https://example.com/?xfbclid=AbC", undefined],
  ["https://example.com/#?fbclid=AbC", undefined],
  ["https://example.com/&fbclid=AbC", undefined],
  ["https://example.com/?fbclid=", undefined],
  ["https://example.com/?FBCLID=AbC", undefined],
  ["https://example.com/?a=b?c&fbclid=Ab-C_d", "Ab-C_d"],
  ["https://example.com/?fbclid=AbC#top", "AbC"],
  ["https://example.com/?fbclid=fb.1.1795168800750.AbC", undefined],
  ["https://example.com/?fbclid=AbC%20d", undefined],
  ["https://example.com/?fbclid=Ab%2FC", undefined],
  ["https://example.com/?fbclid={{fbclid}}", undefined],
  ["https://example.com/?fbclid=[fbclid]&x=1", undefined],
  ["https://example.com/?fbclid=AbC,DeF", undefined],
  ["https://example.com/?fbclid=AbC=", undefined],
  ["https://example.com/?fbclid=%C3%A4&fbclid=AbC", "AbC"],
])("the fbclid in %s is %p", async (normalizedUrl, fbclid) => {
  const { body } = await sent({ ...CLICK, normalizedUrl });
  expect(body.data[0].user_data.fbc).toBe(fbclid === undefined ? undefined : `fb.1.1795168800750.${fbclid}`);
});

describe("Meta's cookies and click id", () => {
  const at = NOW - 3_600_000;
  const click = { ...CLICK, time: new Date(NOW).toISOString(), normalizedUrl: "https://example.com/" };
  test.each([
    ["the cookies", { fbp: `fb.1.${at}.109.AQ`, fbc: `fb.1.${at}.AbC.AQ` }, `fb.1.${at}.109.AQ`, `fb.1.${at}.AbC.AQ`],
    ["the click id", { fbclid: "AbC" }, undefined, `fb.1.${NOW}.AbC`],
    ["the cookie of the same click id", { fbclid: "AbC", fbc: `fb.2.${at}.AbC` }, undefined, `fb.2.${at}.AbC`],
    ["a newer click id", { fbclid: "New", fbc: `fb.1.${at}.AbC` }, undefined, `fb.1.${NOW}.New`],
    [
      "no cookie from the future",
      { fbp: `fb.1.${NOW + 61_000}.109`, fbc: `fb.1.${NOW + 61_000}.AbC` },
      undefined,
      undefined,
    ],
  ])("are sent unchanged: %s", async (_name, ids, fbp, fbc) => {
    const { body } = await sent({ ...click, ids });
    expect([body.data[0].user_data.fbp, body.data[0].user_data.fbc]).toEqual([fbp, fbc]);
  });

  test("are sent with a request for Limited Data Use if that is set", async () => {
    await using server = serve(() => Response.json({ events_received: 1 }));
    const options = { pixelId: "1", accessToken: secret("t"), baseUrl: server.url, safeFetch: safeFetchTo(server.url) };
    const { send, batch } = createMetaChannel({ ...options, limitsDataUse: true });
    await send(click, OPTIONS);
    await batch?.send([click], OPTIONS);
    for (const { body } of server.requests)
      expect(JSON.parse(body).data[0]).toMatchObject({
        data_processing_options: ["LDU"],
        data_processing_options_country: 0,
        data_processing_options_state: 0,
      });
  });
});

test("Meta receives the normalized address, not the posted one", async () => {
  const normalizedUrl = "https://example.com/summer%20sale?fbclid=AbC";
  const { body } = await sent({ ...CLICK, originalUrl: "https://example.com/summer sale?fbclid=AbC", normalizedUrl });
  expect(body.data[0].event_source_url).toBe(normalizedUrl);
  expect(body.data[0].user_data.fbc).toEndWith(".AbC");
});

test("a click from the future is sent with the current time", async () => {
  const { body } = await sent({ ...CLICK, time: new Date(NOW + DAY_MS).toISOString() });
  expect(body.data[0].event_time).toBe(Math.floor(NOW / 1000));
  expect(body.data[0].user_data.fbc).toStartWith(`fb.1.${NOW}.`);
});

test("an unknown IP address is omitted", async () => {
  const { body } = await sent({ ...CLICK, ip: undefined });
  expect(body.data[0].user_data).not.toHaveProperty("client_ip_address");
});

describe("a test event", () => {
  test("is not a PageView without a test code", async () => {
    const { body } = await sent(TEST);
    expect(body.data[0].event_name).toBe("ReachlogTest");
    expect(body).not.toHaveProperty("test_event_code");
  });

  test("is a PageView marked with the test code if one is set", async () => {
    const { body } = await sent(TEST, "TEST123");
    expect([body.data[0].event_name, body.test_event_code]).toEqual(["PageView", "TEST123"]);
  });
});

test.each<[string, Dispatch, "no_user_agent" | "too_old"]>([
  ["no user agent", { ...CLICK, userAgent: undefined }, "no_user_agent"],
  ["a blank user agent", { ...CLICK, userAgent: " " }, "no_user_agent"],
  ["more than 7 days of age", { ...CLICK, time: new Date(NOW - 7 * DAY_MS - 1).toISOString() }, "too_old"],
])("a click with %s is skipped without a request", async (_name, click, reason) => {
  await using server = serve(() => Response.json({ events_received: 1 }));
  expect(await metaAt(server.url).send(click, OPTIONS)).toEqual({ outcome: "skipped", reason });
  expect(server.requests).toEqual([]);
});

test("a click that is exactly 7 days old is sent", async () => {
  await sent({ ...CLICK, time: new Date(NOW - 7 * DAY_MS).toISOString() });
});

test.each([NOTIFICATION, MESSAGE])("sending a $kind throws a TypeError", async (dispatch) => {
  const channel = metaAt("http://127.0.0.1:1");
  expect(await channel.send(dispatch, OPTIONS).catch((fault: unknown) => fault)).toBeInstanceOf(TypeError);
});

test("a call without an answer is retryable, because Meta deduplicates", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  for (const url of [silent.url, broken.url, await deadUrl()]) {
    const result = await metaAt(url).send(CLICK, { ...OPTIONS, timeoutMs: 50 });
    expect(result.outcome).toBe("retryable");
  }
});

test("the check reads the pixel, with the token in a header", async () => {
  await using server = serve(({ headers }) => {
    const known = headers.get("authorization") === "Bearer EAAB-access-token";
    return Response.json({ id: "123456" }, { status: known ? 200 : 400 });
  });
  expect((await metaAt(server.url).check(1000)).ok).toBe(true);
  expect(server.requests[0]).toMatchObject({ method: "GET", path: "/v27.0/123456" });
  expect(server.requests[0]?.query.toString()).toBe("fields=id");
});

test("the check names the settings if Meta refuses, and fails if Meta does not listen", async () => {
  await using server = serve(() => Response.json({ error: { code: 190 } }, { status: 400 }));
  const refused = await metaAt(server.url).check(1000);
  expect(refused).toEqual({ ok: false, detail: "Meta answered 400: check META_PIXEL_ID and META_ACCESS_TOKEN" });
  expect((await metaAt(await deadUrl()).check(1000)).ok).toBe(false);
});
