// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newDatabase } from "eventstore-lite/testing";
import { WHAT_IF_RULES } from "../../src/config/parse-what-if-rules.ts";
import { replay } from "../../src/commands/replay.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { forget } from "../harness/in-process/operation-commands.ts";

const TEMPLATE = "Hi {{name|there}}";
const ENVIRONMENT = { MESSAGE_TEMPLATE: TEMPLATE, DAILY_LIMIT: "100" };
const ACCOUNT: NewEvent = {
  type: "AccountAuthorized",
  data: { user: { id: "1", username: "we", name: "We" }, scopes: ["dm.write"], expires_at: "2027-01-01T00:00:00.000Z" },
};
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const DAY = "2025-11-20";

const sentTo = (id: string, links: string[] = []): NewEvent[] => {
  const attempt = { attempt_id: `to ${id}`, run_id: "r", recipient: { id, username: `user_${id}` } };
  const text = {
    text: "Hi there",
    variant: "A",
    template: parseTemplate(TEMPLATE).id,
    links,
    basis: "opt_in",
    source: "list",
  } as const;
  return [
    { type: "DirectMessageAttempted", data: { ...attempt, ...text, day: DAY, timezone: "UTC" } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: `m${id}`, settled_by: "answer" } },
  ];
};

const finished = (reason: "completed" | "stopped"): NewEvent => {
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  return { type: "RunFinished", data: { run_id: "r", reason, ...counts } };
};

/**
 * Events of a run with messages to three recipients and a reply by the last one, a click of a person and a click of a
 * bot.
 */
const HISTORY: readonly NewEvent[] = [
  ...["10", "11", "12"].map((id) => addedOf({ id, username: `user_${id}` })),
  addedOf({ id: "13", username: "user_13" }, { basis: "none" }),
  { type: "RunStarted", data: { run_id: "r", dry_run: false } },
  { type: "DirectMessageSkipped", data: { run_id: "r", recipient: { id: "13" }, reason: "no_consent" } },
  ...sentTo("10"),
  ...sentTo("11"),
  ...sentTo("12", ["go.example/x"]),
  finished("completed"),
  {
    type: "RecipientSuppressed",
    data: { recipient: { id: "12" }, reason: "opt_out", message_id: "m", hashes: [] },
  },
  { type: "InboxRead", data: { run_id: "r", messages: 5 } },
  clickOf({ user_agent: BROWSER }),
  clickOf({ short_code: "other", user_agent: "curl/8", bot: true }),
];

async function openHistory(more: Record<string, string> = {}): Promise<CommandHarness> {
  const world = await openCommands(undefined, { ...ENVIRONMENT, ...more });
  await world.append(STREAMS.account, [ACCOUNT]);
  await world.append(STREAMS.outreach, HISTORY);
  return world;
}

async function ask(world: CommandHarness, rules: object | string, ...args: string[]) {
  const file = join(world.directory, "rules.json");
  writeFileSync(file, typeof rules === "string" ? rules : JSON.stringify(rules));
  return world.run(replay, "--what-if", file, ...args);
}

async function askJson(world: CommandHarness, rules: object) {
  const { code, out } = await ask(world, rules, "--json");
  expect(code).toBe(0);
  return JSON.parse(out);
}

const alike = (count: number) => ({ was: count, would: count, difference: 0 });

describe.each([
  ["in a file", async () => ({})],
  ["on a server", async () => ({ DATABASE_URL: await newDatabase(), REACHLOG_KEY: "01".repeat(32) })],
] as const)("replay --what-if on a log %s", (_where, settings) => {
  test("finds no difference under today's rules, and records the question without values", async () => {
    await using world = await openHistory(await settings());
    const { position } = await world.store.head();
    const found = await askJson(world, { DAILY_LIMIT: 100, REQUIRE_CONSENT: true, MESSAGE_TEMPLATE: TEMPLATE });
    expect(found).toMatchObject({
      days: [],
      total: { messages: alike(3), sent: alike(3), skipped: { no_consent: alike(1) }, clicks: alike(1) },
      recipients: { lost: { count: 0 }, gained: { count: 0 }, moved: { count: 0 }, skips: { count: 0 } },
      runs: { was: 1, would: 1, unrecorded: 1 },
    });
    const added = await Array.fromAsync(world.store.read({ from: position + 1 }));
    expect(added.map(({ type, data, meta }) => [type, data, meta.caller])).toEqual([
      ["WhatIfAsked", { rules: ["DAILY_LIMIT", "REQUIRE_CONSENT", "MESSAGE_TEMPLATE"], position }, "command-line"],
    ]);
  });

  test("counts reactions to messages that would not have been sent as unknown", async () => {
    await using world = await openHistory(await settings());
    expect(await askJson(world, { DAILY_LIMIT: 2 })).toMatchObject({
      total: { messages: { was: 3, would: 2, difference: -1 }, sent: { was: 3, would: 2, unknown: 0 } },
      recipients: {
        lost: { count: 1, shown: [{ recipient: { username: "user_12" }, would: { day: null, skipped: [] } }] },
      },
      unknown: { sends: 0, clicks: 1, reactions: 1 },
    });
  });

  test("counts a message that only the new rules send, with an unknown outcome", async () => {
    await using world = await openHistory(await settings());
    expect(await askJson(world, { REQUIRE_CONSENT: false })).toMatchObject({
      total: {
        messages: { was: 3, would: 4, difference: 1 },
        sent: { was: 3, would: 3, unknown: 1 },
        skipped: { no_consent: { was: 1, would: 0, difference: -1 } },
      },
      recipients: { gained: { count: 1, shown: [{ recipient: { username: "user_13" } }] } },
      unknown: { sends: 1 },
    });
  });
});

test("under another template the outcomes and clicks of all messages are unknown", async () => {
  await using world = await openHistory();
  const { total, unknown } = await askJson(world, { MESSAGE_TEMPLATE: "Hello {{town}}" });
  expect(total).toMatchObject({ messages: { was: 3, would: 0 }, skipped: { missing_field: { was: 0, would: 3 } } });
  expect(unknown).toMatchObject({ sends: 0, clicks: 1 });
  const other = await askJson(world, { MESSAGE_TEMPLATE: "Hello" });
  expect(other.total).toMatchObject({ messages: alike(3), sent: { was: 3, would: 0, unknown: 3 } });
});

test("other bot rules recount the clicks; a click without a user agent is unknown", async () => {
  await using world = await openHistory();
  await world.append(STREAMS.outreach, [clickOf({ short_code: "hidden", anonymous: true })]);
  const clicksBy = async (rules: object) => (await askJson(world, rules)).total.clicks;
  expect(await clicksBy({ BOT_RULE: "none" })).toEqual({ was: 2, would: 3, unknown: 0, difference: 1 });
  expect(await clicksBy({ BOT_RULE: "lists" })).toEqual({ was: 2, would: 1, unknown: 1, difference: -1 });
  expect(await clicksBy({ BOT_USER_AGENTS: "mozilla" })).toEqual({ was: 2, would: 0, unknown: 1, difference: -2 });
});

test("other stop words report opt-outs and messages with unknown effect, as texts are not stored", async () => {
  await using world = await openHistory();
  expect((await askJson(world, { STOP_WORDS: "halt" })).unknown).toMatchObject({ opt_outs: 1, messages_read: 5 });
  const today = "stop,stopall,unsubscribe,cancel,end,quit,optout,opt out,opt-out";
  expect((await askJson(world, { STOP_WORDS: `${today},halt` })).unknown).toMatchObject({
    opt_outs: 0,
    messages_read: 5,
  });
  expect((await askJson(world, { STOP_WORDS: today })).unknown).toMatchObject({ opt_outs: 0, messages_read: 0 });
});

test("a run that an operator stopped sends no more under other rules", async () => {
  await using world = await openCommands(undefined, ENVIRONMENT);
  await world.append(STREAMS.account, [ACCOUNT]);
  const people = ["10", "11"].map((id) => addedOf({ id, username: `user_${id}` }, { basis: "none" }));
  const skip = (id: string): NewEvent => {
    return { type: "DirectMessageSkipped", data: { run_id: "r", recipient: { id }, reason: "no_consent" } };
  };
  const started: NewEvent = { type: "RunStarted", data: { run_id: "r", dry_run: false } };
  await world.append(STREAMS.outreach, [...people, started, skip("10"), skip("11"), finished("stopped")]);
  const { total } = await askJson(world, { REQUIRE_CONSENT: false });
  expect(total.messages).toEqual(alike(0));
});

test("the output is a table, with lists of recipients, and sentences about the unknown", async () => {
  await using world = await openHistory();
  const { code, out } = await ask(world, { DAILY_LIMIT: 2 });
  expect(code).toBe(0);
  expect(out).toContain("under DAILY_LIMIT:\n");
  expect(out).toMatch(/^2025-11-20 {2}messages +3 +2 +-1$/m);
  expect(out).toContain("1 had a message and would have none\n");
  expect(out).toMatch(/^@user_12 \(12\) +message on 2025-11-20 +nothing$/m);
  expect(out).toContain(
    "unknown: 1 replies or opt-outs answer messages that would not have been sent: they are left out\n",
  );
});

test("an erased recipient is still counted, and not named", async () => {
  await using world = await openHistory();
  expect((await world.run(forget, "user_12", "--yes")).code).toBe(0);
  const { out } = await ask(world, { DAILY_LIMIT: 2 });
  expect(out).toMatch(/^total +messages +3 +2 +-1$/m);
  expect(out).not.toContain("user_12");
});

test.each([
  ["{", "not JSON"],
  ["[]", "not an object"],
  ['{"DAILY_LIMITS": 3}', '"DAILY_LIMITS" is no rule: did you mean DAILY_LIMIT?'],
  ['{"PORT": 3}', `"PORT" is no rule: rules are ${WHAT_IF_RULES.join(", ")}`],
  ['{"DAILY_LIMIT": [3]}', "DAILY_LIMIT: expected a text, a number, true, false or null"],
  ['{"DAILY_LIMIT": 0}', "DAILY_LIMIT: "],
  ['{"SEND_WINDOW": "always"}', "SEND_WINDOW: "],
  ['{"MESSAGE_TEMPLATE": "{{"}', "MESSAGE_TEMPLATE: "],
  ['{"BOT_RULE": "some"}', "BOT_RULE: "],
])("the rules %s are refused with the reason, and nothing is recorded", async (text, message) => {
  await using world = await openHistory();
  const { position } = await world.store.head();
  const asked = ask(world, text);
  expect(asked).rejects.toThrow(message);
  const fault = await asked.catch((thrown: unknown) => thrown);
  expect(fault instanceof ServiceError && fault.kind).toBe("usage");
  expect((await world.store.head()).position).toBe(position);
});

test("with AUDIT_READS the log records a read of recipients", async () => {
  await using world = await openHistory({ AUDIT_READS: "on" });
  const { position } = await world.store.head();
  await ask(world, {});
  const added = await Array.fromAsync(world.store.read({ from: position + 1 }));
  expect(added.map(({ type, data }) => [type, data])).toEqual([
    ["PersonalDataRead", { resource: "preview" }],
    ["WhatIfAsked", { rules: [], position }],
  ]);
});

test("an interrupted --what-if records nothing", async () => {
  await using world = await openHistory();
  const file = join(world.directory, "rules.json");
  writeFileSync(file, "{}");
  const { position } = await world.store.head();
  const { code, err } = await world.interruptedAt(1, replay, "--what-if", file);
  expect([code, err]).toEqual([75, "interrupted; nothing was recorded\n"]);
  expect((await world.store.head()).position).toBe(position);
});
