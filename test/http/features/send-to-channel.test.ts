// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Settlement } from "../../../src/delivery/wait-for-outcome.ts";
import { GOOD, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";

const detail = "the network said no";
const settlements: readonly (readonly [string, Settlement | undefined, number, string])[] = [
  ["delivered", { status: "delivered", latencyMs: 12 }, 200, "delivered"],
  ["pending", undefined, 202, "pending"],
  ["refused", { status: "failed", detail }, 502, "delivery-refused"],
  ["skipped", { status: "skipped", detail }, 502, "delivery-refused"],
  ["in doubt", { status: "in_doubt", detail }, 504, "delivery-in-doubt"],
];

describe.each([
  ["/api/notify", "NotificationRequested"],
  ["/api/messaging", "MessageRequested"],
] as const)("%s", (path, type) => {
  test.each(settlements)("reports a dispatch that is %s", async (_what, settlement, status, name) => {
    await using world = await openApp();
    world.settlement = settlement;
    const response = await post(world.app, path, GOOD[path], { token: TOKEN });
    const body = (await response.json()) as Record<string, unknown>;
    const [event] = await world.events(type);
    expect(response.status).toBe(status);
    if (status < 300) expect(body).toEqual({ id: event?.id, status: name });
    else expect(body).toMatchObject({ type: `urn:reachlog:problem:${name}`, detail });
  });

  test("records nothing without credentials", async () => {
    await using world = await openApp({ channels: ["ads"] });
    expect(await problemIn(await post(world.app, path, GOOD[path], { token: TOKEN }))).toBe(
      "503 channel-not-configured",
    );
    expect(await world.events(type)).toEqual([]);
  });
});

test("a test message reports the result of each channel, configured or not", async () => {
  await using world = await openApp({ channels: ["chat", "messaging"] });
  const results = async (settlement: Settlement | undefined) => {
    world.settlement = settlement;
    const response = await post(world.app, "/api/tracking/test", {}, { token: TOKEN });
    expect(response.status).toBe(200);
    return ((await response.json()) as { results: Record<string, unknown> }).results;
  };
  const off = { ok: false, status: "not_configured", latency_ms: null };
  const others = { ads: off, webhook: off };
  const delivered = { ok: true, status: "delivered", latency_ms: 12 };
  expect(await results({ status: "delivered", latencyMs: 12 })).toEqual({
    ...others,
    chat: delivered,
    messaging: delivered,
  });
  const failed = { ok: false, status: "failed", latency_ms: null, detail };
  expect(await results({ status: "failed", detail })).toEqual({ ...others, chat: failed, messaging: failed });
  const refused = { ...failed, latency_ms: 7 };
  expect(await results({ status: "failed", detail, latencyMs: 7 })).toEqual({
    ...others,
    chat: refused,
    messaging: refused,
  });
  const doubt = { ok: false, status: "in_doubt", latency_ms: null, detail };
  expect(await results({ status: "in_doubt", detail })).toEqual({ ...others, chat: doubt, messaging: doubt });
  expect(await results(undefined)).toMatchObject({ chat: { ok: false, status: "in_doubt" } });
});

test("a test message can go to one channel alone, such as a named webhook", async () => {
  await using world = await openApp({ channels: ["chat", "webhook", "webhook-crm"] });
  world.settlement = { status: "delivered", latencyMs: 12 };
  const tested = async (body: object) => {
    const response = await post(world.app, "/api/tracking/test", body, { token: TOKEN });
    return [response.status, response.ok ? ((await response.json()) as { results: object }).results : undefined];
  };
  const delivered = { ok: true, status: "delivered", latency_ms: 12 };
  const off = { ok: false, status: "not_configured", latency_ms: null };
  expect(await tested({})).toEqual([
    200,
    { ads: off, chat: delivered, messaging: off, webhook: delivered, "webhook-crm": delivered },
  ]);
  expect(await tested({ channel: "webhook-crm" })).toEqual([200, { "webhook-crm": delivered }]);
  expect(await tested({ channel: "webhook-none" })).toEqual([200, { "webhook-none": off }]);
  expect((await tested({ channel: "webhook_crm" }))[0]).toBe(422);
  expect((await world.events("ChannelTestRequested")).map(({ data }) => data.channels)).toEqual([
    ["chat", "webhook", "webhook-crm"],
    ["webhook-crm"],
    [],
  ]);
});
