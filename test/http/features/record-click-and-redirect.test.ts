// These tests run parts of the service inside the test process.
import { Value } from "@sinclair/typebox/value";
import type { Static } from "@sinclair/typebox";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { codec, makeEvent } from "../../../events/event-types-and-codec.ts";
import { CLICK_CHANNELS } from "../../../events/channel-and-lane-names.ts";
import { normalizeClick, toClick, trackingBody } from "../../../src/http/features/record-click-and-redirect.ts";
import { type AppHarness, ask, GOOD, openApp, post, TOKEN } from "../../harness/in-process/app.ts";
import { LOG_ENGINES } from "../../harness/in-process/temporary-log.ts";

test("a click is answered with the id of its event, which names its channels", async () => {
  await using world = await openApp({ channels: ["ads", "messaging"] });
  const response = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"]);
  const [event] = await world.events("LinkClicked");
  expect([response.status, await response.json()]).toEqual([202, { id: event?.id }]);
  expect(event).toMatchObject({
    stream: "link-sho.rt/spring",
    data: { ...GOOD["/api/tracking/event"], bot: false, channels: ["ads", "messaging"] },
  });
});

test.each([
  ["blank", { ip: "", user_agent: "" }],
  ["white space", { ip: " ", user_agent: " \t" }],
  ["null", { ip: null, user_agent: null }],
  ["absent", { ip: undefined, user_agent: undefined }],
])("an address and user agent are recorded as absent if they are %s", async (_name, members) => {
  await using world = await openApp();
  const response = await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], ...members });
  const [event] = await world.events("LinkClicked");
  expect(response.status).toBe(202);
  for (const member of ["ip", "user_agent", "visitor"]) expect(event?.data).not.toHaveProperty(member);
});

test("all notations of an address are one visitor, and IPv4 is recorded as IPv4", async () => {
  await using world = await openApp();
  const link = { domain: "sho.rt", code: "spring", target: "https://example.com/landing" };
  await world.append("outreach", { type: "LinkAdded", data: link });
  for (const ip of ["192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201", "2001:DB8:0::1", "2001:db8::1"])
    await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], ip });
  const clicks = await world.events("LinkClicked");
  expect(clicks.map(({ data }) => data.ip)).toEqual([...Array(3).fill("192.0.2.1"), ...Array(2).fill("2001:db8::1")]);
  expect(new Set(clicks.map(({ data }) => data.visitor)).size).toBe(2);
});

test("all spellings of a domain and code are recorded as one link", async () => {
  await using world = await openApp();
  const spellings = [
    ["sho.rt", "spring"],
    ["SHO.rt.", "/spring/"],
    ["sho.rt:443", "spring?utm_source=dm"],
    ["sho.rt", "%73pring"],
  ];
  for (const [domain, short_code] of spellings)
    await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], domain, short_code });
  const clicks = await world.events("LinkClicked");
  expect(clicks.map(({ stream, data }) => [stream, data.domain, data.short_code])).toEqual(
    spellings.map(() => ["link-sho.rt/spring", "sho.rt", "spring"]),
  );
});

const FBP = "fb.1.1795168800750.1098115397.AQEAAQMB";
const FBC = "fb.1.1795168800750.IwAR0_-aB.AQEAAQMB";
const IDS = { fbp: FBP, fbc: FBC, fbclid: "IwAR0_-aB" };
const REFERRER = "https://t.co/?about=ann";

describe("what a caller knows of the visitor", () => {
  const recorded = async (world: AppHarness, more: object): Promise<unknown> => {
    const answer = await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], ...more });
    expect(answer.status).toBe(202);
    return (await world.events("LinkClicked")).at(-1)?.data;
  };

  test("is recorded byte for byte, and encrypted", async () => {
    await using world = await openApp();
    expect(await recorded(world, { ...IDS, referrer: REFERRER })).toMatchObject({ ...IDS, referrer: REFERRER });
    const stored = JSON.stringify(await Array.fromAsync(world.store.readStored({})));
    for (const text of [...Object.values(IDS), "about=ann"]) expect(stored).not.toContain(text);
  });

  test.each([
    ["a malformed id", { fbp: "fb.1.1795168800750.x y", fbc: "IwAR0_-aB", fbclid: "a b" }, {}],
    ["a blank or null one", { fbp: "", fbc: null, fbclid: null, referrer: " " }, {}],
    ["an id of a network that is not configured", IDS, { channels: ["chat"] as const }],
    [
      "an id of a bot whose clicks are only recorded",
      { ...IDS, user_agent: "curl/8" },
      { env: { BOT_CLICKS: "record" } },
    ],
  ])("is left out if it is %s", async (_name, more, given) => {
    await using world = await openApp(given);
    const data = await recorded(world, more);
    for (const member of ["fbp", "fbc", "fbclid", "referrer"]) expect(data).not.toHaveProperty(member);
  });

  test("is left out whole for a visitor who asked not to be tracked", async () => {
    await using world = await openApp();
    const { ip: _, user_agent: __, ...rest } = GOOD["/api/tracking/event"];
    const channels = ["ads", "chat", "messaging"];
    expect(await recorded(world, { ...IDS, referrer: REFERRER, anonymous: true })).toEqual({
      ...rest,
      anonymous: true,
      bot: false,
      channels,
    });
  });
});

/** fast-check generators of the members of a click's request body. */
const MEMBERS: Readonly<Record<keyof Static<typeof trackingBody>, fc.Arbitrary<string | boolean | null>>> = {
  event: fc.string({ minLength: 1, maxLength: 64 }),
  domain: fc.string({ maxLength: 253 }),
  short_code: fc.string({ unit: "grapheme", maxLength: 20 }),
  original_url: fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.constant("HTTPS://Shop.Example/a b")),
  ip: fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom("", " ", null)),
  user_agent: fc.oneof(fc.string({ unit: "grapheme", maxLength: 50 }), fc.constant(null)),
  referrer: fc.oneof(fc.webUrl(), fc.constantFrom("", null)),
  fbp: fc.constantFrom(FBP, "fb.1.1", "", null),
  fbc: fc.constantFrom(FBC, "fb.1.1", "", null),
  fbclid: fc.constantFrom("IwAR0_-aB", "a b", "", null),
  oppref: fc.constantFrom("oppref_abc", "a b", null),
  sc_click_id: fc.constantFrom("a3f4-b5c6", "", null),
  anonymous: fc.boolean(),
};

test.each(LOG_ENGINES)("results and clicks count all spellings of a message's link, in a log %s", async (engine) => {
  let now = Date.parse("2026-03-01T08:00:00.000Z");
  await using world = await openApp({ engine, logClock: () => now });
  const about = { attempt_id: "a", run_id: "r", recipient: { id: "101", username: "ann" } };
  const links = ["go.example/spring"];
  await world.append(
    "outreach",
    { type: "LinkAdded", data: { domain: "go.example", code: "spring", target: "https://example.com/landing" } },
    { type: "DirectMessageAttempted", data: { ...about, text: "Hi", variant: "A", day: "2026-03-01", links } },
    { type: "DirectMessageSent", data: { ...about, message_id: "m", settled_by: "answer" } },
  );
  // A minute passes, because a click right after the message would be suspected to come from a machine.
  now += 60_000;
  const spellings = [
    { domain: "go.example", short_code: "spring", ip: "203.0.113.1" },
    { domain: "GO.example.", short_code: "spring/", ip: "::ffff:203.0.113.1" },
    { domain: "go.example:443", short_code: "/spring?utm_source=dm", ip: "" },
    { domain: "go.example", short_code: "%73pring", ip: null },
  ];
  for (const click of spellings)
    expect((await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], ...click })).status).toBe(
      202,
    );
  await world.projector.until((await world.store.head()).position);
  const results = (await (await ask(world.app, "/social/results?by=link", { token: TOKEN })).json()) as object;
  expect(results).toMatchObject({ rows: [{ link: links[0], sent: 1, clicks: { total: 4, unique: 2 } }] });
  const clicks = (await (await ask(world.app, "/api/clicks", { token: TOKEN })).json()) as object;
  expect(clicks).toMatchObject({ links: [{ link: links[0], clicks: 4 }] });
});

test("every valid body makes an event that fits its schema", () => {
  const bodies = fc.record(MEMBERS, { requiredKeys: trackingBody.required });
  fc.assert(
    fc.property(bodies, fc.boolean(), fc.subarray([...CLICK_CHANNELS]), (body, bot, channels) => {
      fc.pre(Value.Check(trackingBody, body));
      const event = makeEvent("LinkClicked", crypto.randomUUID(), toClick(normalizeClick(body), bot, channels), {});
      expect(() => codec.encode([event])).not.toThrow();
    }),
  );
});
