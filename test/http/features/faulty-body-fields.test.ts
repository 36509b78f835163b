// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import urls from "../../fixtures/urls.json";
import { GOOD, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";

type Path = keyof typeof GOOD;

interface Refused {
  readonly errors: readonly { readonly path: string; readonly message: string }[];
}

const world = await openApp();
afterAll(() => world[Symbol.asyncDispose]());
await world.authorize();

/** Posts the endpoint's valid example body with some fields replaced; `undefined` removes a field. */
async function send(path: Path, fields: Record<string, unknown>) {
  const { position } = await world.store.head();
  const response = await post(world.app, path, { ...GOOD[path], ...fields }, { token: TOKEN });
  const events = await world.events("NotificationRequested", "MessageRequested", "LinkClicked");
  const data = events.find((event) => event.position > position)?.data;
  return { status: response.status, response, data, triggers: world.triggers.splice(0) };
}

const wide = (length: number): string => "ä".repeat(length);

test.each([
  ["/social/run", { dry_run: "true" }, "/dry_run"],
  ["/social/run", { dry_run: null }, "/dry_run"],
  ["/social/run", { dryRun: true }, "/dryRun"],
  ["/social/run", { dry_rum: true }, "/dry_rum"],
  ["/social/run", { limit: 0 }, "/limit"],
  ["/social/run", { limit: 101 }, "/limit"],
  ["/social/run", { limit: 1.5 }, "/limit"],
  ["/social/run", { variant: "a" }, "/variant"],
  ["/social/run", { basis: "friend" }, "/basis"],
  ["/social/run", { source: "mail" }, "/source"],
  ["/api/notify", { message: undefined }, "/message"],
  ["/api/notify", { message: "" }, "/message"],
  ["/api/notify", { message: " \t\n" }, "/message"],
  ["/api/notify", { message: wide(4001) }, "/message"],
  ["/api/notify", { message: 7 }, "/message"],
  ["/api/notify", { service: wide(101) }, "/service"],
  ["/api/notify", { level: "loud" }, "/level"],
  ["/api/notify", { level: "" }, "/level"],
  ["/api/notify", { level: "info\n" }, "/level"],
  ["/api/notify", { lvl: "info" }, "/lvl"],
  ["/api/tracking/event", { event: undefined }, "/event"],
  ["/api/tracking/event", { event: wide(65) }, "/event"],
  ["/api/tracking/event", { domain: undefined }, "/domain"],
  ["/api/tracking/event", { domain: "" }, "/domain"],
  ["/api/tracking/event", { domain: wide(254) }, "/domain"],
  ["/api/tracking/event", { domain: "a\u0085b" }, "/domain"],
  ["/api/tracking/event", { short_code: "" }, "/short_code"],
  ["/api/tracking/event", { short_code: wide(129) }, "/short_code"],
  ["/api/tracking/event", { short_code: "a\nb" }, "/short_code"],
  ["/api/tracking/event", { short_code: "a\u007fb" }, "/short_code"],
  ["/api/tracking/event", { original_url: undefined }, "/original_url"],
  ["/api/tracking/event", { ip: "256.1.1.1" }, "/ip"],
  ["/api/tracking/event", { ip: 7 }, "/ip"],
  ["/api/tracking/event", { user_agent: false }, "/user_agent"],
  ["/api/tracking/event", { user_agent: wide(1025) }, "/user_agent"],
  ["/api/tracking/event", { userAgent: "x" }, "/userAgent"],
  ["/api/tracking/test", { text: "x" }, "/text"],
  ["/api/messaging", { text: undefined }, "/text"],
  ["/api/messaging", { text: "   " }, "/text"],
  ["/api/messaging", { text: "\u3000" }, "/text"],
  ["/api/messaging", { text: wide(4097) }, "/text"],
  ["/api/messaging", { chat_id: 7 }, "/chat_id"],
] as const)("%s refuses %j and names the path %s", async (path, fields, named) => {
  const { response, data, triggers } = await send(path, fields);
  const refused = (await response.clone().json()) as Refused;
  expect([response.status, refused.errors.map((error) => error.path)]).toEqual([422, [named]]);
  expect([data, triggers]).toEqual([undefined, []]);
});

test("a refusal does not repeat the values that were sent", async () => {
  const { response } = await send("/api/messaging", { text: 4_711_4711, secret: "canary" });
  const body = await response.text();
  expect(body).not.toContain("canary");
  expect(body).not.toContain("47114711");
});

test.each([
  ["/social/run", { dry_run: true }],
  ["/social/run", { dry_run: false }],
  ["/social/run", { limit: 1 }],
  ["/social/run", { limit: 100, variant: "B", basis: "none", source: "list" }],
  ["/api/notify", { message: wide(4000), service: wide(100) }],
  ["/api/notify", { service: undefined, level: undefined }],
  ["/api/tracking/event", { event: wide(64), domain: wide(253), short_code: wide(128), user_agent: wide(1024) }],
  ["/api/tracking/event", { ip: undefined, user_agent: undefined }],
  ["/api/tracking/event", { ip: "2001:db8::1", user_agent: "" }],
  ["/api/messaging", { text: wide(4096) }],
  ["/api/messaging", { text: " x " }],
] as const)("%s accepts %j", async (path, fields) => {
  expect((await send(path, fields)).status).toBeLessThan(300);
});

test.each([
  ["debug", "debug"],
  ["info", "info"],
  ["success", "success"],
  ["warning", "warning"],
  ["warn", "warning"],
  ["error", "error"],
  ["err", "error"],
  ["critical", "critical"],
  ["fatal", "critical"],
  ["WARN", "warning"],
  ["Fatal", "critical"],
  [undefined, "info"],
])("the level %j is recorded as %s", async (given, level) => {
  expect((await send("/api/notify", { level: given })).data).toMatchObject({ level });
});

test("a notification without a service is recorded with the service unknown", async () => {
  expect((await send("/api/notify", { service: undefined })).data).toMatchObject({ service: "unknown" });
});

describe("original_url", () => {
  test.each(urls.valid)("%s is accepted and recorded unchanged", async (url) => {
    const { status, data } = await send("/api/tracking/event", { original_url: url });
    expect(status).toBe(202);
    expect(data).toMatchObject({ original_url: url });
  });

  test.each(urls.normalized)("$url is recorded unchanged, together with its normalized form", async (each) => {
    const { status, data } = await send("/api/tracking/event", { original_url: each.url });
    expect(status).toBe(202);
    expect(data).toMatchObject({ original_url: each.url, normalized_url: each.normalized });
  });

  test("a normalized address is recorded without a second form", async () => {
    const { data } = await send("/api/tracking/event", { original_url: "https://example.com/a%20b?q=%C3%BC" });
    expect(data).not.toHaveProperty("normalized_url");
  });

  test.each(urls.invalid)("$url is refused: $reason", async ({ url }) => {
    const { response, data } = await send("/api/tracking/event", { original_url: url });
    expect([await problemIn(response), data]).toEqual(["422 invalid-request", undefined]);
  });
});
