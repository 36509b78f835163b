// On the memory harness.
import { expect, test } from "bun:test";
import { doctor } from "../../src/commands/doctor.ts";
import { openCommands } from "../harness/memory/commands.ts";

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
])("doctor says what of the configuration is left out: %j", async (settings, told) => {
  await using world = await openCommands(undefined, settings);
  const state = told === "complete" ? "ok     " : "missing";
  expect((await world.run(doctor)).out).toStartWith(`${state} configuration: ${told}\n`);
});

test("doctor asks for a link to opt out, since X may not show replies written in X Chat", async () => {
  const linked = { ...X, MESSAGE_TEMPLATE: "Hi https://acme.example/stop" };
  for (const [settings, line] of [
    [X, /^warning opt-outs: .*X Chat.*POST \/social\/recipients\/suppress$/m],
    [linked, /^ok {6}opt-outs: .*X Chat.*POST \/social\/recipients\/suppress$/m],
  ] as const) {
    await using world = await openCommands(undefined, settings);
    expect((await world.run(doctor)).out).toMatch(line);
  }
  await using silent = await openCommands(undefined, { ...X, X_CLIENT_ID: "" });
  expect((await silent.run(doctor)).out).not.toContain("opt-outs");
});

test("doctor says when messages go out", async () => {
  const window = { SEND_WINDOW: "Mon-Fri 09:00-17:00", SEND_WINDOW_ZONE: "recipient", SEND_WINDOW_CLOSED: "pause" };
  await using world = await openCommands(undefined, { ...X, ...window });
  expect((await world.run(doctor)).out).toMatch(
    /^ok {6}sending window: Mon-Fri 09:00-17:00 in each recipient's time zone, or UTC where that is not known; now (?:open|closed) in UTC until \S+Z; outside of it a run pauses$/m,
  );
  await using silent = await openCommands(undefined, X);
  expect((await silent.run(doctor)).out).not.toContain("sending window");
});

test("doctor has one word for each state, and the same with --json", async () => {
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
      /^missing configuration: .*\n(?:warning configuration: .*\n)+warning opt-outs: X may not show replies .*: A\. Name a stop word .*\n(?:warning core dumps: .*\n)?ok {6}log: 0 events, .*\nok {6}keys: .*\nok {6}clock: .*\nok {6}vault: .*\nmissing outreach \(x\): no account is authorized yet: .*\n$/,
    ),
  ]);
  const states = (await world.run(doctor, "--json")).out.trim().split("\n");
  expect(states.map((line) => JSON.parse(line) as object)).toContainEqual({
    what: "vault",
    state: "ok",
    detail: "opens with this key",
  });
});

test("doctor names tokens that have expired or soon will", async () => {
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
      expect.stringMatching(/^warning tokens: the token a{12} of web expires on [-0-9]{10}: reachlog token new web /),
      expect.stringMatching(/^warning tokens: the token c{12} of old expired on [-0-9]{10}: reachlog token new old /),
    ],
  ]);
});
