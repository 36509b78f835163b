// On the memory harness.
import { describe, expect, test } from "bun:test";
import { createMetaChannel } from "../../../src/networks/meta/meta.ts";
import type { Dispatch } from "../../../src/networks/network.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOTIFICATION, NOW, TEST } from "../dispatches.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/memory/servers.ts";

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

test("a click is one PageView, at the time of the click, under the click's id", async () => {
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
])("the click id of %s is %p", async (normalizedUrl, fbclid) => {
  const { body } = await sent({ ...CLICK, normalizedUrl });
  expect(body.data[0].user_data.fbc).toBe(fbclid === undefined ? undefined : `fb.1.1795168800750.${fbclid}`);
});

test("Meta gets the address that the browser asked for, not the one that was posted", async () => {
  const normalizedUrl = "https://example.com/summer%20sale?fbclid=AbC";
  const { body } = await sent({ ...CLICK, originalUrl: "https://example.com/summer sale?fbclid=AbC", normalizedUrl });
  expect(body.data[0].event_source_url).toBe(normalizedUrl);
  expect(body.data[0].user_data.fbc).toEndWith(".AbC");
});

test("a click whose time is still to come, since the clock was set back, is dated now", async () => {
  const { body } = await sent({ ...CLICK, time: new Date(NOW + DAY_MS).toISOString() });
  expect(body.data[0].event_time).toBe(Math.floor(NOW / 1000));
  expect(body.data[0].user_data.fbc).toStartWith(`fb.1.${NOW}.`);
});

test("an unknown address is left out", async () => {
  const { body } = await sent({ ...CLICK, ip: undefined });
  expect(body.data[0].user_data).not.toHaveProperty("client_ip_address");
});

describe("a test event", () => {
  test("without a test code never counts as a PageView", async () => {
    const { body } = await sent(TEST);
    expect(body.data[0].event_name).toBe("ReachlogTest");
    expect(body).not.toHaveProperty("test_event_code");
  });

  test("with a test code is a PageView that Meta shows as a test", async () => {
    const { body } = await sent(TEST, "TEST123");
    expect([body.data[0].event_name, body.test_event_code]).toEqual(["PageView", "TEST123"]);
  });
});

test.each<[string, Dispatch, "no_user_agent" | "too_old"]>([
  ["no user agent", { ...CLICK, userAgent: undefined }, "no_user_agent"],
  ["a blank user agent", { ...CLICK, userAgent: " " }, "no_user_agent"],
  ["more than 7 days of age", { ...CLICK, time: new Date(NOW - 7 * DAY_MS - 1).toISOString() }, "too_old"],
])("a click with %s is skipped without a call", async (_name, click, reason) => {
  await using server = serve(() => Response.json({ events_received: 1 }));
  expect(await metaAt(server.url).send(click, OPTIONS)).toEqual({ outcome: "skipped", reason });
  expect(server.requests).toEqual([]);
});

test("a click of exactly 7 days is sent", async () => {
  await sent({ ...CLICK, time: new Date(NOW - 7 * DAY_MS).toISOString() });
});

test.each([NOTIFICATION, MESSAGE])("to ask for a $kind is a defect of the caller", async (dispatch) => {
  const channel = metaAt("http://127.0.0.1:1");
  expect(await channel.send(dispatch, OPTIONS).catch((fault: unknown) => fault)).toBeInstanceOf(TypeError);
});

test("every call without an answer may be repeated: Meta de-duplicates", async () => {
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

test("the check says what to look at when Meta refuses, and survives silence", async () => {
  await using server = serve(() => Response.json({ error: { code: 190 } }, { status: 400 }));
  const refused = await metaAt(server.url).check(1000);
  expect(refused).toEqual({ ok: false, detail: "Meta answered 400: check META_PIXEL_ID and META_ACCESS_TOKEN" });
  expect((await metaAt(await deadUrl()).check(1000)).ok).toBe(false);
});
