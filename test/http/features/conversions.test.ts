// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { forgetPerson } from "../../../src/privacy/forget-person-or-address.ts";
import { recordConsent } from "../../../src/recipients/record-consent.ts";
import { findContact } from "../../../projections/contact-identity.ts";
import { type AppHarness, ask, openApp, post, TOKEN } from "../../harness/in-process/app.ts";
import { LOG_ENGINES, type LogEngine } from "../../harness/in-process/temporary-log.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const ANN = { id: "101", username: "ann" };
const OWN = "7HxQp2MvkZ9bC";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SALE = { name: "Purchase", value: "24.90", currency: "EUR" };

const LOG: readonly NewEvent[] = [
  { type: "LinkAdded", data: { domain: "go.example", code: "spring", target: "https://shop.example/" } },
  addedOf(ANN, { tracking: "granted" }),
  {
    type: "DirectMessageAttempted",
    data: {
      attempt_id: "a",
      run_id: "r",
      recipient: ANN,
      text: "Hi",
      links: ["go.example/spring"],
      personal_links: [{ code: OWN, link: "go.example/spring" }],
      variant: "A",
      day: "2026-03-01",
    },
  },
  {
    type: "DirectMessageSent",
    data: { attempt_id: "a", run_id: "r", recipient: ANN, message_id: "1", settled_by: "answer" },
  },
];

interface World extends AppHarness {
  /** Moves the clocks of the service and of the log by `ms`. */
  pass(ms: number): void;
}

async function open({ passed = HOUR_MS, ...given }: Given = {}): Promise<World> {
  let now = Date.parse("2026-03-01T08:00:00.000Z");
  // The service looks a click up by the time in the click's id, so the ids are made with the test's clock.
  const makeId = () => Bun.randomUUIDv7("hex", now);
  const hosts = ["localhost", "go.example"];
  const world = await openApp({ ...given, hosts, makeId, logClock: () => now });
  const pass = (ms: number): void => {
    now += ms;
    world.now = now;
  };
  world.now = now;
  await world.append(STREAMS.outreach, ...LOG);
  pass(passed);
  return Object.assign(world, { pass });
}

interface Given {
  readonly engine?: LogEngine;
  readonly env?: Readonly<Record<string, string>>;
  readonly channels?: readonly ChannelName[];
  /** Time after the message, in ms. */
  readonly passed?: number;
}

/** Records a click, and returns its id. */
async function click({ app }: AppHarness, more: object = {}): Promise<string> {
  const body = {
    event: "click",
    domain: "go.example",
    short_code: "spring",
    original_url: "https://shop.example/?a=1",
  };
  const answer = await post(app, "/api/tracking/event", { ...body, user_agent: BROWSER, ip: "192.0.2.1", ...more });
  return ((await answer.json()) as { id: string }).id;
}

interface Converted {
  readonly status: number;
  readonly id?: string;
  readonly event_id?: string;
  readonly type?: string;
  readonly errors?: readonly object[];
}

async function convert({ app }: AppHarness, body: object, headers: Readonly<Record<string, string>> = {}) {
  const response = await ask(app, "/api/tracking/conversion", { method: "POST", body, token: TOKEN, headers });
  return { status: response.status, ...((await response.json()) as Record<string, unknown>) } as Converted;
}

async function recorded(world: AppHarness) {
  const [event, ...more] = await world.events("ConversionRecorded");
  expect(more).toEqual([]);
  return event!.data;
}

describe.each(LOG_ENGINES)("in a log %s", (engine) => {
  test("a conversion is recorded with its click, and goes to the ads network only", async () => {
    await using world = await open({ engine });
    const click_id = await click(world);
    const answer = await convert(world, { ...SALE, click_id });
    const [event] = await world.events("ConversionRecorded");
    expect(answer).toMatchObject({ status: 202, id: event!.id, event_id: event!.id, attributed: true });
    const [clicked] = await world.events("LinkClicked");
    expect(event).toMatchObject({
      stream: "link-go.example/spring",
      data: { name: "Purchase", value: 2490, currency: "EUR", click: clicked!.position, channels: ["ads"] },
    });
    expect(event!.data).not.toHaveProperty("code");
  });

  test("a repeat by external_id answers the first result, and another body is refused", async () => {
    await using world = await open({ engine });
    const click_id = await click(world);
    const first = await convert(world, { ...SALE, click_id, external_id: "order-1" });
    // The caller repeats the conversion after 40 days. The repeat gets the first answer, although a new conversion
    // could no longer be attributed to the click.
    world.pass(40 * DAY_MS);
    expect(first.event_id).toBe("order-1");
    expect(await convert(world, { ...SALE, click_id, external_id: "order-1" })).toEqual(first);
    const other = await convert(world, { ...SALE, value: "5", click_id, external_id: "order-1" });
    expect([other.status, other.type]).toEqual([409, "urn:reachlog:problem:external-id-reused"]);
    expect((await convert(world, { name: "Lead", click_id, external_id: "order-1" })).status).toBe(202);
    expect((await world.events("ConversionRecorded")).length).toBe(2);
    const stored = await Array.fromAsync(world.store.readStored({}), (event) => JSON.stringify(event));
    expect(stored.filter((event) => event.includes("order-1"))).toEqual([]);
  });

  test("a recipient's conversion loses the recipient with their erasure, and keeps its value", async () => {
    await using world = await open({ engine });
    const click_id = await click(world, { short_code: OWN });
    await convert(world, { ...SALE, click_id, external_id: "order-1" });
    expect(await recorded(world)).toMatchObject({ code: OWN, external_id: "order-1" });
    const { positions } = findContact(world.projector.state("contacts"), ANN)!;
    const [event] = await world.events("ConversionRecorded");
    expect(positions).toContain(event!.position);
    await forgetPerson(world.deps, (contacts) => findContact(contacts, ANN), {
      metadata: {},
      signal: new AbortController().signal,
    });
    expect(await recorded(world)).toMatchObject({
      code: "erased",
      external_id: "erased",
      value: 2490,
      channels: ["ads"],
    });
  });
});

describe("no ads network is told of a conversion by", () => {
  test.each([
    ["a member", { anonymous: true }, {}],
    ["Sec-GPC", {}, { "sec-gpc": "1" }],
    ["DNT", {}, { dnt: "1" }],
  ])("a visitor who refuses by %s", async (_name, members, headers) => {
    await using world = await open();
    const click_id = await click(world, { short_code: OWN });
    await convert(world, { ...SALE, click_id, ...members }, headers);
    expect(await recorded(world)).toMatchObject({ anonymous: true, value: 2490, channels: [] });
    expect(await recorded(world)).not.toHaveProperty("code");
  });

  test("a recipient who revoked tracking before or after the click, and the recipient of no click", async () => {
    await using world = await open();
    const before = await click(world, { short_code: OWN });
    await recordConsent(world.deps, "ann", { tracking: "denied" }, {});
    const after = await click(world, { short_code: OWN });
    for (const by of [{ click_id: before }, { click_id: after }, { recipient: "@ann" }, { recipient: "@unknown" }])
      expect((await convert(world, { ...SALE, ...by })).status).toBe(202);
    const events = await world.events("ConversionRecorded");
    expect(events.map(({ data }) => [data.anonymous, data.channels, data.code, data.click !== undefined])).toEqual([
      [true, [], undefined, true],
      [true, [], undefined, true],
      [true, [], undefined, false],
      [true, [], undefined, false],
    ]);
  });

  test("the visitor of a link's last click, who need not be the buyer", async () => {
    await using world = await open();
    await click(world);
    expect(await convert(world, { ...SALE, link: "https://GO.example/spring" })).toMatchObject({ attributed: true });
    expect(await recorded(world)).toMatchObject({ domain: "go.example", short_code: "spring", channels: [] });
  });
});

describe("attribution", () => {
  test("takes the last or the first click of the days before, as configured, but no bot's", async () => {
    for (const [model, at] of [
      ["last", 2],
      ["first", 1],
    ] as const) {
      await using world = await open({ env: { ATTRIBUTION: model, ATTRIBUTION_DAYS: "10" } });
      for (const [days, user_agent] of [
        [0, BROWSER],
        [6, BROWSER],
        [1, BROWSER],
        [1, "Twitterbot/1.0"],
      ] as const) {
        world.pass(days * DAY_MS);
        await click(world, { user_agent, short_code: OWN });
      }
      world.pass(4 * DAY_MS);
      const clicks = await world.events("LinkClicked");
      for (const by of [{ link: "go.example/spring" }, { recipient: "ann" }]) await convert(world, { ...SALE, ...by });
      const found = (await world.events("ConversionRecorded")).map(({ data }) => data.click);
      expect(found).toEqual([clicks[at]!.position, clicks[at]!.position]);
    }
  });

  test("finds none for a bot's click, and for a fetch right after the message", async () => {
    await using world = await open({ passed: 0 });
    const fetched = await click(world, { short_code: OWN });
    const bot = await click(world, { user_agent: "Twitterbot/1.0" });
    for (const click_id of [fetched, bot]) {
      expect(await convert(world, { ...SALE, click_id })).toMatchObject({ status: 202, attributed: false });
    }
    const events = await world.events("ConversionRecorded");
    expect(events.map(({ data }) => [data.short_code, data.channels])).toEqual([
      ["spring", []],
      ["spring", []],
    ]);
  });
});

test.each([
  ["no value", { name: "Purchase" }, "/value"],
  ["no currency", { name: "Lead", value: 1 }, "/currency"],
  ["no value beside a currency", { name: "Lead", currency: "EUR" }, "/value"],
  ["too many decimals", { ...SALE, value: "1.005" }, "/value"],
  ["an unknown currency", { ...SALE, currency: "QQQ" }, "/currency"],
  ["value and amount", { ...SALE, amount: 2490 }, "/amount"],
  ["a time in the future", { ...SALE, occurred_at: "2026-03-01T09:06:00Z" }, "/occurred_at"],
  ["a time long ago", { ...SALE, occurred_at: "2026-02-22T08:59:00Z" }, "/occurred_at"],
  ["two clicks", { ...SALE, recipient: "ann" }, ""],
])("a conversion with %s is refused, and nothing is recorded", async (_name, body, path) => {
  await using world = await open();
  const { status, errors } = await convert(world, { link: "go.example/spring", ...body });
  expect([status, errors]).toMatchObject([422, [{ path }]]);
  expect(await world.events("ConversionRecorded")).toEqual([]);
});

test("an unknown click is refused", async () => {
  await using world = await open();
  const { status, type } = await convert(world, { ...SALE, click_id: Bun.randomUUIDv7() });
  expect([status, type]).toEqual([404, "urn:reachlog:problem:unknown-click"]);
});

test("each conversion goes to the ads networks that have a name for it", async () => {
  await using world = await open({ channels: ["ads", "ads-openai", "ads-snap"] });
  const click_id = await click(world);
  for (const name of ["CompleteRegistration", "Lead", "constructor"]) await convert(world, { name, click_id });
  const events = await world.events("ConversionRecorded");
  expect(events.map(({ data }) => [data.name, data.channels])).toEqual([
    ["CompleteRegistration", ["ads", "ads-openai", "ads-snap"]],
    ["Lead", ["ads", "ads-openai"]],
    ["constructor", ["ads", "ads-openai"]],
  ]);
});

test("a negative value reverses a conversion, and no network is told", async () => {
  await using world = await open();
  const click_id = await click(world);
  await convert(world, { name: "Purchase", amount: -500, currency: "JPY", click_id });
  const [event] = await world.events("ConversionReversed");
  expect(event!.data).toMatchObject({ value: -500, currency: "JPY", channels: [] });
});

test("a conversion is announced in the team chat where asked", async () => {
  await using world = await open();
  const click_id = await click(world);
  await convert(world, { ...SALE, click_id, notify: true });
  const [event] = await world.events("NotificationRequested");
  expect(event!.data).toEqual({
    message: "Purchase of 24.90 EUR by go.example/spring",
    service: "conversions",
    level: "success",
  });
});
