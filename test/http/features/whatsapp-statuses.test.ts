// These tests run parts of the service inside the test process.
import { createHmac } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { type AppHarness, ask, openApp, post, TOKEN } from "../../harness/in-process/app.ts";
import { LOG_ENGINES, type LogEngine } from "../../harness/in-process/temporary-log.ts";
import { signIn, textsAt } from "../../console/open-console.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";

const MINUTE_MS = 60_000;
const PATH = "/api/messaging/whatsapp";
const APP_SECRET = "secret-of-the-app";
const VERIFY_TOKEN = "verify-token";
const SETTINGS = {
  MESSAGING_PROVIDER: "whatsapp",
  WHATSAPP_ACCESS_TOKEN: "t",
  WHATSAPP_PHONE_NUMBER_ID: "1",
  WHATSAPP_TO: "15550783881",
};
const ENV = { ...SETTINGS, WHATSAPP_APP_SECRET: APP_SECRET, WHATSAPP_VERIFY_TOKEN: VERIFY_TOKEN };
/** Id of a message as WhatsApp makes it: base64 with the recipient's telephone number in it. */
const WAMID = `wamid.${btoa("15550783881 1")}`;
const LOST = { code: 131_042, title: "Business eligibility payment issue" };

async function open(engine: LogEngine = "in a file", env: Readonly<Record<string, string>> = ENV): Promise<AppHarness> {
  const now = Date.parse("2026-03-01T08:00:00.000Z");
  const makeId = () => Bun.randomUUIDv7("hex", now);
  const world = await openApp({ engine, env, makeId, logClock: () => now, channels: ["messaging"] });
  world.now = now;
  // The service looks a message up by the time in the message's id, so ids are made with the log's clock.
  const sent = await post(world.app, "/api/messaging", { text: "hi" }, { token: TOKEN });
  expect(sent.status).toBe(200);
  return world;
}

const statusOf = (dispatchId: string | undefined, more: object = {}) => ({
  id: WAMID,
  status: "failed",
  timestamp: "1772352000",
  recipient_id: "15550783881",
  ...(dispatchId === undefined ? {} : { biz_opaque_callback_data: dispatchId }),
  errors: [LOST],
  ...more,
});

const metadata = { display_phone_number: "15550001111", phone_number_id: SETTINGS.WHATSAPP_PHONE_NUMBER_ID };

const noticeOf = (...statuses: object[]) => ({
  object: "whatsapp_business_account",
  entry: [{ id: "1", changes: [{ field: "messages", value: { messaging_product: "whatsapp", metadata, statuses } }] }],
});

const sign = (body: string, secret = APP_SECRET) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

interface Answer {
  readonly status: number;
  readonly lost?: number;
  readonly passed?: number;
  readonly unknown?: number;
}

async function send({ app }: AppHarness, notice: object | string, signature?: string): Promise<Answer> {
  const body = typeof notice === "string" ? notice : JSON.stringify(notice);
  const headers = { "x-hub-signature-256": signature ?? sign(body) };
  const answer = await ask(app, PATH, { method: "POST", body, headers });
  return { status: answer.status, ...((await answer.json()) as object) };
}

async function openWithId(engine?: LogEngine) {
  const world = await open(engine);
  const [{ id, position } = { id: "", position: 0 }] = await world.events("MessageRequested");
  return { world, id, position, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

describe.each(LOG_ENGINES)("in a log %s", (engine) => {
  test("a message that WhatsApp lost is recorded once, and shown with its dispatch", async () => {
    await using opened = await openWithId(engine);
    const { world, id, position } = opened;
    expect(await send(world, noticeOf(statusOf(id)))).toEqual({ status: 200, lost: 1, passed: 0, unknown: 0 });
    expect((await send(world, noticeOf(statusOf(id), statusOf(id)))).status).toBe(200);
    const lost = await world.events("DispatchLost");
    const detail = "131042: the account's payment is not in order";
    expect(lost.map(({ data }) => data)).toEqual([{ event_id: id, source: position, channel: "messaging", detail }]);
    const stored = await Array.fromAsync(world.store.readStored({}), (event) => JSON.stringify(event));
    expect(stored.filter((event) => event.includes(WAMID) || event.includes("15550783881"))).toEqual([]);

    const shown = await ask(world.app, `/api/deliveries/show?event_id=${lost[0]!.id}`, { token: TOKEN });
    expect(await shown.json()).toMatchObject({
      dispatches: [
        { source: { id }, channels: [{ channel: "messaging", status: "lost", events: [{ id: lost[0]!.id }] }] },
      ],
    });
    const { cookie } = await signIn(world);
    const page = await (await ask(world.app, `/activity/${position}`, { headers: { cookie } })).text();
    const lines = await textsAt(page, ".line .sentence");
    expect(lines.map(({ text }) => text)).toEqual([expect.stringContaining("accepted a message and lost it")]);
  });

  test.each(["DispatchSucceeded", "DispatchInDoubt"] as const)(
    "each click of a digest that WhatsApp lost is recorded as lost, once its %s is recorded",
    async (type) => {
      await using opened = await openWithId(engine);
      const { world } = opened;
      const click = { event: "click", domain: "go.example", short_code: "a", original_url: "https://shop.example/" };
      const data = { ...click, bot: false, channels: ["messaging" as const] };
      await world.append(STREAMS.link("go.example", "a"), { type: "LinkClicked", data }, { type: "LinkClicked", data });
      const clicks = await world.events("LinkClicked");
      const digest = world.deps.makeId();
      // Meta may report the loss before the dispatcher has recorded the outcome. The service then answers 503, so that
      // Meta repeats the report.
      const ofDigest = statusOf(digest, { id: `${WAMID}2` });
      expect(await send(world, noticeOf(ofDigest, statusOf(opened.id)))).toMatchObject({ status: 503 });
      const [source = 0] = clicks.map(({ position }) => position);
      const outcome = outcomeOf(type, { channel: "messaging", lane: "clicks", source });
      const asked = type === "DispatchSucceeded" ? { status: 200, latency_ms: 1 } : { detail: "timeout" };
      const request = { sources: [[source, source + 1]], attempt: 1, mode: "digest", digest, ...asked };
      const requests = [request] as unknown as typeof outcome.data.requests;
      await world.append(STREAMS.delivery("messaging"), {
        ...outcome,
        data: { ...outcome.data, requests },
      } as NewEvent);
      expect(await send(world, noticeOf(ofDigest))).toMatchObject({ status: 200, lost: 1 });
      const lost = await world.events("DispatchLost");
      expect(lost.map((event) => event.data.event_id)).toEqual([opened.id, ...clicks.map((event) => event.id)]);
    },
  );

  test("a message that a retry replaced may be lost late: the dispatch stays delivered until the retry is lost too", async () => {
    await using opened = await openWithId(engine);
    const { world, id, position: source } = opened;
    const about = { channel: "messaging", lane: "direct" } as const;
    const stream = STREAMS.delivery("messaging");
    await world.append(stream, outcomeOf("DispatchInDoubt", { ...about, source, detail: "timeout" }));
    const retried = { event_ids: [id], status: "in_doubt", accept_doubles: true };
    expect((await post(world.app, "/api/deliveries/retry", retried, { token: TOKEN })).status).toBe(200);
    const [retry] = await world.events("DispatchRetryRequested");
    await world.append(stream, outcomeOf("DispatchSucceeded", { ...about, source: retry!.position, latency_ms: 1 }));
    const statusShown = async () => {
      const shown = await ask(world.app, `/api/deliveries/show?event_id=${id}`, { token: TOKEN });
      const { dispatches } = (await shown.json()) as { dispatches: { channels: { status: string }[] }[] };
      return dispatches[0]?.channels[0]?.status;
    };
    expect(await statusShown()).toBe("delivered");
    expect(await send(world, noticeOf(statusOf(id)))).toMatchObject({ status: 200, lost: 1 });
    expect(await statusShown()).toBe("delivered");
    expect(await send(world, noticeOf(statusOf(retry!.id, { id: `${WAMID}2` })))).toMatchObject({ lost: 1 });
    expect(await statusShown()).toBe("lost");
    const lost = await world.events("DispatchLost");
    expect(lost.map(({ data: { event_id, source: at, retry: by } }) => [event_id, at, by])).toEqual([
      [id, source, undefined],
      [id, source, retry!.position],
    ]);
  });

  test("an operator's decision is shown behind those about a thousand other dispatches", async () => {
    await using opened = await openWithId(engine);
    const { world, id, position: source } = opened;
    const { cookie } = await signIn(world);
    const about = { channel: "messaging", lane: "direct", source } as const;
    const dead = outcomeOf("DispatchAbandoned", { ...about, detail: "gone", refused: true });
    await world.append(STREAMS.delivery("messaging"), dead);
    const data = { event_id: id, source: source + 1, channel: "messaging", detail: "131042" } as const;
    const others = Array.from({ length: 1_000 }, (): NewEvent => ({ type: "DispatchLost", data }));
    await world.append(STREAMS.requests, ...others);
    const why = "not needed";
    await world.append(STREAMS.requests, {
      type: "DispatchDiscarded",
      data: { event_id: id, source, channel: "messaging", why },
    });
    const page = await (await ask(world.app, `/activity/${source}`, { headers: { cookie } })).text();
    const lines = await textsAt(page, ".line .sentence");
    expect(lines.map(({ text }) => text)).toEqual([expect.stringContaining("gone"), expect.stringContaining(why)]);
    expect(page).not.toContain("This channel was far behind");
  });
});

test("other statuses, and those of messages that the log did not send, are recorded nowhere", async () => {
  await using opened = await openWithId();
  const { world, id } = opened;
  const notice = noticeOf(
    statusOf(id, { status: "sent", errors: undefined }),
    statusOf(id, { status: "delivered", errors: undefined }),
    statusOf(undefined),
    statusOf("another program"),
    statusOf(world.deps.makeId().replace(/-7/, "-4")),
    statusOf(Bun.randomUUIDv7("hex", world.now - 10 * MINUTE_MS)),
    statusOf(Bun.randomUUIDv7("hex", world.now + 10 * MINUTE_MS)),
  );
  expect(await send(world, notice)).toEqual({ status: 200, lost: 0, passed: 2, unknown: 5 });
  const ofAnotherNumber = noticeOf().entry.map((entry) => ({
    ...entry,
    changes: [{ value: { metadata: { phone_number_id: "2" }, statuses: [statusOf(id)] } }],
  }));
  expect(await send(world, { ...noticeOf(), entry: ofAnotherNumber })).toMatchObject({ lost: 0, unknown: 0 });
  // Meta also posts messages that people write to this webhook. The service must ignore them.
  const written = noticeOf().entry.map((entry) => ({ ...entry, changes: [{ value: { messages: [{ text: "\0" }] } }] }));
  expect(await send(world, { ...noticeOf(), entry: written })).toMatchObject({ lost: 0, passed: 0, unknown: 0 });
  expect(await send(world, { object: "page", entry: [] })).toMatchObject({ status: 200, unknown: 1 });
  expect(await send(world, "no JSON")).toMatchObject({ status: 200, unknown: 1 });
  expect(await world.events("DispatchLost")).toEqual([]);
});

test("values in Meta's own words are not recorded", async () => {
  await using opened = await openWithId();
  const { world, id } = opened;
  const title = `${"very ".repeat(50)}"Ada" at 15550783881`;
  for (const error of [
    { code: 1, title: 'No "Ada" at 15550783881' },
    { code: 2, title },
  ]) {
    const more = { id: `${WAMID}${error.code}`, errors: [error] };
    expect(await send(world, noticeOf(statusOf(id, more)))).toMatchObject({ lost: 1 });
  }
  const [first, second] = (await world.events("DispatchLost")).map(({ data }) => data.detail);
  expect(first).toBe("1: No […] at […]");
  expect(second).toHaveLength("2: ".length + 200);
});

test.each([
  ["another secret", (body: string) => sign(body, "another")],
  ["another body", () => sign("{}")],
  ["no signature", () => ""],
  ["a signature of another length", (body: string) => `${sign(body)}00`],
  ["a signature with a character of two bytes", (body: string) => sign(body).replace(/.$/, "é")],
])("a notice with %s is refused, and nothing of it is read", async (_, toSignature) => {
  await using opened = await openWithId();
  const { world, id } = opened;
  const notice = noticeOf(statusOf(id));
  expect((await send(world, notice, toSignature(JSON.stringify(notice)))).status).toBe(403);
  expect(await world.events("DispatchLost")).toEqual([]);
});

test("a notice above 3 MiB is refused, and a body is read only if a signature and the secrets are there", async () => {
  await using world = await open();
  const body = " ".repeat(3 * 1024 * 1024);
  expect((await send(world, body)).status).toBe(200);
  const larger = `${body} `;
  expect((await send(world, larger)).status).toBe(413);
  for (const signature of ["", `${sign(larger)}0`, sign(larger).toUpperCase(), "sha1=0"])
    expect((await send(world, larger, signature)).status).toBe(403);
  await using unset = await open("in a file", SETTINGS);
  expect((await send(unset, larger)).status).toBe(403);
});

test("Meta's challenge is answered to those who know the token", async () => {
  await using world = await open();
  const challenge = async (token: string, mode = "subscribe") => {
    const query = { "hub.mode": mode, "hub.verify_token": token, "hub.challenge": "<b>1158201444" };
    const answer = await ask(world.app, `${PATH}?${new URLSearchParams(query)}`);
    const { status, headers } = answer;
    return [status, headers.get("content-type"), headers.get("x-content-type-options"), await answer.text()];
  };
  const answered = [200, "text/plain; charset=utf-8", "nosniff", "<b>1158201444"];
  expect(await challenge(VERIFY_TOKEN)).toEqual(answered);
  expect((await challenge(VERIFY_TOKEN, "unsubscribe"))[0]).toBe(403);
  expect((await challenge("verify-tokes"))[0]).toBe(403);
  expect((await challenge(""))[0]).toBe(403);
});

test("without the webhook's secrets nothing is accepted", async () => {
  await using world = await open("in a file", SETTINGS);
  expect((await send(world, noticeOf(), sign(JSON.stringify(noticeOf()), ""))).status).toBe(403);
  expect((await ask(world.app, `${PATH}?hub.mode=subscribe`)).status).toBe(403);
});
