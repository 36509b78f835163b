// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { Type, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { createOpenAiAdsChannel } from "../../../src/networks/ads/openai.ts";
import { createSnapChannel, SNAP_NAMES } from "../../../src/networks/ads/snap.ts";
import type { Click, Conversion } from "../../../src/networks/network.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, NOTIFICATION, NOW, TEST } from "../sample-dispatches.ts";
import { safeFetchTo, serve } from "../../harness/in-process/local-test-servers.ts";

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

function openChannel({ create }: Pick<(typeof NETWORKS)[number], "create">, baseUrl: string) {
  const safeFetch = safeFetchTo(baseUrl);
  return create({ pixelId: "p 1", accessToken: secret("t&k"), baseUrl, safeFetch, clock: () => NOW });
}

describe.each(NETWORKS)("$name", ({ create, path, query, test: tested, body }) => {
  const open = (baseUrl: string) => openChannel({ create }, baseUrl);

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

const only = { additionalProperties: false };
const filled = Type.String({ minLength: 1 });
const webAddress = Type.String({ pattern: "^https?://." });
const currency = Type.String({ pattern: "^[A-Z]{3}$" });

/**
 * Schema of a conversion in OpenAI's documents, with the type and the shape of its data. An amount needs a currency:
 * https://developers.openai.com/ads/conversions-api, https://developers.openai.com/ads/supported-events
 */
function openAiConversion(type: string, shape: string, more: Record<string, TSchema>) {
  const dataType = { type: Type.Literal(shape) };
  const worth = Type.Object({ ...dataType, amount: Type.Integer(), currency }, only);
  return Type.Object(
    {
      id: filled,
      type: Type.Literal(type),
      // OpenAI accepts events of the last 7 days, and up to 10 minutes ahead.
      timestamp_ms: Type.Integer({ minimum: NOW - 7 * DAY_MS, maximum: NOW + 10 * 60_000 }),
      ...more,
      oppref: Type.Optional(filled),
      source_url: webAddress,
      action_source: Type.Literal("web"),
      user: Type.Object({ ip_address: Type.Optional(filled), user_agent: Type.Optional(filled) }, only),
      data: Type.Union([worth, Type.Object({ ...dataType, currency: Type.Optional(currency) }, only)]),
    },
    only,
  );
}

/** Schema of a conversion in Snap's documents: https://developers.snap.com/api/marketing-api/Conversions-API/Parameters */
const snapConversion = Type.Object(
  {
    // The names of web events that Snap lists.
    event_name: Type.Union(
      [
        "PURCHASE SAVE START_CHECKOUT ADD_CART VIEW_CONTENT ADD_BILLING SIGN_UP SEARCH PAGE_VIEW SUBSCRIBE AD_CLICK",
        "AD_VIEW COMPLETE_TUTORIAL LEVEL_COMPLETE INVITE LOGIN SHARE RESERVE ACHIEVEMENT_UNLOCKED ADD_TO_WISHLIST",
        "SPENT_CREDITS RATE START_TRIAL LIST_VIEW CUSTOM_EVENT_1 CUSTOM_EVENT_2 CUSTOM_EVENT_3 CUSTOM_EVENT_4",
        "CUSTOM_EVENT_5",
      ].flatMap((names) => names.split(" ").map((name) => Type.Literal(name))),
    ),
    // Snap accepts seconds, and events of the last 37 days.
    event_time: Type.Integer({ minimum: Math.floor(NOW / 1_000) - 37 * 86_400, maximum: Math.floor(NOW / 1_000) }),
    event_id: filled,
    event_source_url: webAddress,
    action_source: Type.Literal("WEB"),
    user_data: Type.Object(
      { client_ip_address: filled, client_user_agent: filled, sc_click_id: Type.Optional(filled) },
      only,
    ),
    custom_data: Type.Optional(Type.Object({ value: Type.Number(), currency }, only)),
  },
  only,
);

const PURCHASE: Conversion = {
  kind: "conversion",
  id: "order-1001",
  time: CLICK.time,
  name: "Purchase",
  value: "24.90",
  currency: "EUR",
  click: VISITED,
};

/** Sends a conversion to the network, alone and in a batch. Returns the one text that both requests contain. */
async function postedConversion(network: (typeof NETWORKS)[number], given: Partial<Conversion>) {
  await using server = serve(() => Response.json({}));
  const channel = openChannel(network, server.url);
  const conversion = { ...PURCHASE, ...given };
  expect(await channel.send(conversion, OPTIONS)).toEqual({ outcome: "delivered", status: 200 });
  expect(await channel.batch?.send([conversion], OPTIONS)).toEqual([{ outcome: "delivered", status: 200 }]);
  const bodies = server.requests.map(({ body }) => body);
  expect(bodies).toEqual([bodies[0]!, bodies[0]!]);
  return bodies[0]!;
}

/** Returns in what the only event of a request contradicts the network's documents. */
function faultsIn(body: string, member: "events" | "data", schema: TSchema): readonly string[] {
  const events: unknown = JSON.parse(body)[member];
  return [...Value.Errors(Type.Tuple([schema]), events)].map(({ path, message }) => `${path}: ${message}`);
}

const PRICES = [
  ["500", "JPY", 500],
  ["24.90", "EUR", 2_490],
  ["0.00", "EUR", 0],
  ["1.234", "BHD", 1_234],
  ["9999999999999.99", "EUR", 999_999_999_999_999],
] as const;

test.each(PRICES)(
  "a purchase of %s %s is as both networks document one, to the last digit",
  async (value, code, units) => {
    const purchase = { value, currency: code };
    const [openAi, snap] = [
      await postedConversion(NETWORKS[0], purchase),
      await postedConversion(NETWORKS[1], purchase),
    ];
    expect(faultsIn(openAi, "events", openAiConversion("order_created", "contents", {}))).toEqual([]);
    expect(JSON.parse(openAi).events[0]).toMatchObject({
      id: "order-1001",
      timestamp_ms: at,
      data: { amount: units, currency: code },
    });
    expect(faultsIn(snap, "data", snapConversion)).toEqual([]);
    expect(JSON.parse(snap).data[0]).toMatchObject({
      event_name: "PURCHASE",
      event_id: "order-1001",
      event_time: Math.floor(at / 1_000),
    });
    // Compares the text of the request. Parsing would hide a digit that a binary fraction cannot represent.
    expect(snap).toContain(`"custom_data":{"value":${value},"currency":"${code}"}`);
  },
);

test.each([
  ["Lead", "lead_created", "customer_action", {}],
  ["CompleteRegistration", "registration_completed", "customer_action", {}],
  ["Schedule", "appointment_scheduled", "customer_action", {}],
  ["ViewContent", "contents_viewed", "contents", {}],
  ["AddToCart", "items_added", "contents", {}],
  ["InitiateCheckout", "checkout_started", "contents", {}],
  ["Subscribe", "subscription_created", "plan_enrollment", {}],
  ["StartTrial", "trial_started", "plan_enrollment", {}],
  ["Wine tasting", "custom", "custom", { custom_event_name: Type.Literal("Wine tasting") }],
  ["constructor", "custom", "custom", { custom_event_name: Type.Literal("constructor") }],
] as const)("OpenAI gets %s as it documents %s, with and without a value", async (name, type, shape, more) => {
  const schema = openAiConversion(type, shape, more);
  const free = await postedConversion(NETWORKS[0], { name, value: undefined, currency: undefined });
  expect(faultsIn(free, "events", schema)).toEqual([]);
  expect(JSON.parse(free).events[0].data).toEqual({ type: shape });
  const paid = await postedConversion(NETWORKS[0], { name, value: "5.00", currency: "EUR" });
  expect(faultsIn(paid, "events", schema)).toEqual([]);
  expect(JSON.parse(paid).events[0].data).toEqual({ type: shape, amount: 500, currency: "EUR" });
});

test.each([...SNAP_NAMES])("Snap gets %s as its %s, with and without a value", async (name, snapName) => {
  for (const given of [
    { name, value: undefined, currency: undefined },
    { name, value: "5.00", currency: "EUR" },
  ]) {
    const body = await postedConversion(NETWORKS[1], given);
    expect(faultsIn(body, "data", snapConversion)).toEqual([]);
    expect(JSON.parse(body).data[0].event_name).toBe(snapName);
  }
});

test.each([
  ["OpenAI", 1_000, "events", NETWORKS[0]],
  ["Snap", 2_000, "data", NETWORKS[1]],
] as const)("%s gets at most the %i conversions in a request that it documents", async (_, max, member, network) => {
  await using server = serve(() => Response.json({}));
  const channel = openChannel(network, server.url);
  const many = Array.from({ length: max + 1 }, (_, number) => ({ ...PURCHASE, id: `order-${number}` }));
  expect(await channel.batch?.send(many, OPTIONS)).toHaveLength(max + 1);
  const sizes = server.requests.map(({ body }) => (JSON.parse(body)[member] as unknown[]).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(max);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(max + 1);
  expect(channel.batch?.max).toBeLessThanOrEqual(max);
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
