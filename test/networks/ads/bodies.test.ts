// On the memory harness.
import { describe, expect, test } from "bun:test";
import { createOpenAiAdsChannel } from "../../../src/networks/ads/openai.ts";
import { createSnapChannel } from "../../../src/networks/ads/snap.ts";
import type { Click } from "../../../src/networks/network.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, NOTIFICATION, NOW, TEST } from "../dispatches.ts";
import { safeFetchTo, serve } from "../../harness/memory/servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const DAY_MS = 24 * 3_600_000;
const VISITED: Click = { ...CLICK, kind: "click", ids: { oppref: "oppref_abc", sc_click_id: "a3f4", fbp: "fb.1.1.1" } };
const { id, normalizedUrl: url, ip, userAgent } = VISITED;
const at = Math.min(NOW, Date.parse(CLICK.time));

const NETWORKS = [
  {
    name: "OpenAI",
    create: createOpenAiAdsChannel,
    path: "/v1/events",
    query: "pid=p%201",
    test: ["/v1/events", { validate_only: true }],
    body: {
      validate_only: false,
      events: [
        {
          id,
          type: "page_viewed",
          timestamp_ms: at,
          oppref: "oppref_abc",
          source_url: url,
          action_source: "web",
          user: { ip_address: ip, user_agent: userAgent },
          data: { type: "contents" },
        },
      ],
    },
  },
  {
    name: "Snap",
    create: createSnapChannel,
    path: "/v3/p%201/events",
    query: "access_token=t%26k",
    test: ["/v3/p%201/events/validate", {}],
    body: {
      data: [
        {
          event_name: "PAGE_VIEW",
          event_time: Math.floor(at / 1000),
          event_id: id,
          event_source_url: url,
          action_source: "WEB",
          user_data: { client_ip_address: ip, client_user_agent: userAgent, sc_click_id: "a3f4" },
        },
      ],
    },
  },
] as const;

describe.each(NETWORKS)("$name", ({ create, path, query, test: tested, body }) => {
  const open = (baseUrl: string) =>
    create({ pixelId: "p 1", accessToken: secret("t&k"), baseUrl, safeFetch: safeFetchTo(baseUrl), clock: () => NOW });

  test("gets a click as a page view with the click's id, time and own identifiers", async () => {
    await using server = serve(() => Response.json({}));
    const { send, batch } = open(server.url);
    expect(await send(VISITED, OPTIONS)).toEqual({ outcome: "delivered", status: 200 });
    expect(await batch?.send([VISITED], OPTIONS)).toEqual([{ outcome: "delivered", status: 200 }]);
    for (const request of server.requests) {
      expect([request.path, request.query.toString().replace("+", "%20")]).toEqual([path, query]);
      expect(JSON.parse(request.body)).toEqual(body);
    }
  });

  test("gets a test and a check as events that it does not count", async () => {
    await using server = serve(() => Response.json({}));
    const channel = open(server.url);
    expect(await channel.send(TEST, OPTIONS)).toMatchObject({ outcome: "delivered" });
    expect(await channel.check(60_000)).toMatchObject({ ok: true });
    for (const request of server.requests) {
      expect(request.path).toBe(tested[0]);
      expect(JSON.parse(request.body)).toMatchObject(tested[1]);
    }
  });

  test("loses no good event to a bad one of the same request, and gets none that it would refuse", async () => {
    await using server = serve(({ body: sent }) => new Response(null, { status: sent.includes("bad") ? 400 : 204 }));
    const clicks = [
      VISITED,
      { ...VISITED, userAgent: " " },
      { ...VISITED, id: "bad" },
      { ...VISITED, time: new Date(NOW - 7 * DAY_MS - 1).toISOString() },
      { ...VISITED, id: "last" },
    ];
    const results = await open(server.url).batch?.send(clicks, OPTIONS);
    expect(results?.map((result) => ("reason" in result ? result.reason : result.outcome))).toEqual([
      "delivered",
      "no_user_agent",
      "refused",
      "too_old",
      "delivered",
    ]);
  });

  test.each([
    [401, { outcome: "refused", channel: true }],
    [404, { outcome: "refused", channel: true }],
    [400, { outcome: "refused", channel: false }],
    [429, { outcome: "retryable" }],
    [500, { outcome: "retryable", mayHaveArrived: true }],
    [302, { outcome: "retryable", mayHaveArrived: true }],
  ] as const)("is read by its status alone: %i", async (status, expected) => {
    await using server = serve(() => new Response("t&k", { status }));
    const result = await open(server.url).send(VISITED, OPTIONS);
    expect(result).toMatchObject(expected);
    expect(JSON.stringify(result)).not.toMatch(/t&k|t%26k/);
  });

  test("is sent nothing but clicks and tests", async () => {
    const sending = open("http://127.0.0.1:1").send(NOTIFICATION, OPTIONS);
    expect(await sending.catch((fault: unknown) => fault)).toBeInstanceOf(TypeError);
  });
});

test("Snap gets no click without an IP address, which it refuses; OpenAI does", async () => {
  await using server = serve(() => Response.json({}));
  const options = {
    pixelId: "p",
    accessToken: secret("t"),
    baseUrl: server.url,
    safeFetch: safeFetchTo(server.url),
    clock: () => NOW,
  };
  const click = { ...VISITED, ip: undefined };
  expect(await createSnapChannel(options).send(click, OPTIONS)).toEqual({
    outcome: "skipped",
    reason: "no_ip_address",
  });
  expect(await createOpenAiAdsChannel(options).send(click, OPTIONS)).toMatchObject({ outcome: "delivered" });
});
