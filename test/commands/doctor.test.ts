// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { doctor } from "../../src/commands/doctor.ts";
import { openCommands } from "../harness/in-process/commands.ts";

const CHAT = { CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T000/B000/XXXX" };
const X = { X_CLIENT_ID: "client", MESSAGE_TEMPLATE: "Hi" };
const META = { META_PIXEL_ID: "1", META_ACCESS_TOKEN: "token" };
const TELEGRAM = { TELEGRAM_BOT_TOKEN: "1:token", TELEGRAM_CHAT_ID: "7" };

test.each([
  [{}, "without faults; not configured: outreach (X_CLIENT_ID), ads, chat, messaging"],
  [CHAT, "without faults; not configured: outreach (X_CLIENT_ID), ads, messaging"],
  [
    { ...CHAT, ...META, ...TELEGRAM, X_CLIENT_ID: "client" },
    "without faults; not configured: the message (MESSAGE_TEMPLATE)",
  ],
  [{ ...CHAT, ...META, ...TELEGRAM, ...X }, "complete"],
])("doctor names what is not configured: %j", async (settings, told) => {
  await using world = await openCommands(undefined, settings);
  const state = told === "complete" ? "ok     " : "missing";
  expect((await world.run(doctor)).out).toStartWith(`${state} configuration: ${told}\n`);
});

test("doctor warns if the template offers no way to opt out", async () => {
  const worded = { ...X, MESSAGE_TEMPLATE: "Hi. Reply STOP to opt out." };
  const linked = { ...X, MESSAGE_TEMPLATE: "Hi {{optout}}", PUBLIC_URL: "http://localhost:3000" };
  for (const [settings, line] of [
    [X, /^warning opt-outs: Variants without a way to opt out: A\. Add \{\{optout\}\}/m],
    [worded, /^ok {6}opt-outs: .*X Chat.*without \{\{optout\}\}: A$/m],
    [linked, /^ok {6}opt-outs: Each variant links/m],
    [linked, /^warning configuration: MESSAGE_TEMPLATE: \{\{optout\}\} leads to PUBLIC_URL, which only this machine/m],
  ] as const) {
    await using world = await openCommands(undefined, settings);
    expect((await world.run(doctor)).out).toMatch(line);
  }
  await using silent = await openCommands(undefined, { ...X, X_CLIENT_ID: "" });
  expect((await silent.run(doctor)).out).not.toContain("opt-outs");
});

test("doctor warns if few of WhatsApp's free texts are left in the month", async () => {
  const number = { WHATSAPP_ACCESS_TOKEN: "t", WHATSAPP_PHONE_NUMBER_ID: "1", WHATSAPP_TO: "+15550783881" };
  const now = Date.now();
  // Both events must be in the present month. At the very beginning of the month, two minutes ago would be in the month
  // before.
  const start = Math.max(now - 120_000, Date.parse(`${new Date(now).toISOString().slice(0, 7)}-01`));
  await using world = await openCommands(start, { MESSAGING_PROVIDER: "whatsapp", ...number });
  const requests = [{ sources: [1], attempt: 1, mode: "single" as const, status: 200, latency_ms: 1 }];
  const channel = { channel: "messaging", lane: "direct", low_watermark: 0 } as const;
  for (const texts of [899, 1]) {
    expect((await world.run(doctor)).out).not.toContain("texts this month");
    const data = { ...channel, requests: Array.from({ length: texts }, () => requests[0]!) };
    await world.append("delivery-messaging", [{ type: "DispatchSucceeded", data }]);
  }
  expect((await world.run(doctor)).out).toMatch(/^warning messaging: WhatsApp accepted 900 texts this month/m);
});

test("doctor describes the sending window", async () => {
  const window = { SEND_WINDOW: "Mon-Fri 09:00-17:00", SEND_WINDOW_ZONE: "recipient", SEND_WINDOW_CLOSED: "pause" };
  await using world = await openCommands(undefined, { ...X, ...window });
  expect((await world.run(doctor)).out).toMatch(
    /^ok {6}sending window: Mon-Fri 09:00-17:00 in each recipient's time zone, or UTC where that is not known; now (?:open|closed) in UTC until \S+Z; outside of it a run pauses$/m,
  );
  await using silent = await openCommands(undefined, X);
  expect((await silent.run(doctor)).out).not.toContain("sending window");
});

test("doctor shows one word for each state, also with --json", async () => {
  await using world = await openCommands(undefined, {
    ...X,
    X_ACCOUNT: "acme",
    HOST: "0.0.0.0",
    API_TOKENS: "ops:0123456789abcdef",
  });
  const { code, out } = await world.run(doctor, "--online");
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(
      /^missing configuration: .*\n(?:warning configuration: .*\n)+warning opt-outs: Variants without a way to opt out: A\. .*\n(?:warning core dumps: .*\n)?ok {6}log: 0 events, .*\nok {6}keys: .*\nok {6}clock: .*\nok {6}vault: .*\nmissing outreach \(x\): no account is authorized yet: .*\n$/,
    ),
  ]);
  const states = (await world.run(doctor, "--json")).out.trim().split("\n");
  expect(states.map((line) => JSON.parse(line) as object)).toContainEqual({
    what: "vault",
    state: "ok",
    detail: "opens with this key",
  });
});

test("doctor warns about tokens that have expired or soon will", async () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().replace(/\.\d+/, "");
  const entry = (name: string, digit: string, days: number) =>
    `${name}:sha256:${digit.repeat(64)}:scope=read:expires=${inDays(days)}`;
  const API_TOKENS = [entry("web", "a", 13), entry("ops", "b", 15), entry("old", "c", -1)].join();
  await using world = await openCommands(undefined, { API_TOKENS });
  const { code, out } = await world.run(doctor);
  const lines = out.split("\n").filter((line) => line.includes(" tokens: "));
  expect([code, lines]).toEqual([
    0,
    [
      expect.stringMatching(
        /^warning tokens: the token a{12} of web expires on [-0-9]{10}: create another one with reachlog token new web$/,
      ),
      expect.stringMatching(
        /^warning tokens: the token c{12} of old expired on [-0-9]{10}: create another one with reachlog token new old$/,
      ),
    ],
  ]);
});
