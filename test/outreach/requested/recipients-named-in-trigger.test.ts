// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Recipient } from "../../../events/outreach.ts";
import type { OutreachContext } from "../../../src/outreach/run-context.ts";
import type { Triggered } from "../../../src/outreach/start-run.ts";
import { openSource } from "../../../src/outreach/sources/open-sources.ts";
import { parseOpenHours, type SendWindow } from "../../../src/config/send-window.ts";
import { LOG_ENGINES, METADATA } from "../../harness/in-process/temporary-log.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import {
  openOutreach,
  openOutreachOn,
  RULES,
  type OutreachHarness,
} from "../../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../../harness/in-process/social-network.ts";

const reached = ({ network }: OutreachHarness): string[] => network.accepted.map(({ recipientId }) => recipientId);

const OPEN = { ...RULES, requireConsent: false };

/** Returns the outcome of each recipient in the log, by id or handle, as the newest event with an outcome states it. */
async function outcomes(world: OutreachHarness): Promise<Record<string, string>> {
  const types = ["DirectMessageSent", "DirectMessageSkipped", "RecipientNotReached"] as const;
  const events = (await Promise.all(types.map((type) => world.events(type)))).flat();
  const sorted = events.toSorted((one, other) => one.position - other.position);
  return Object.fromEntries(
    sorted.map(({ data }) => {
      const { id, username } = data.recipient;
      return [id ?? `@${username}`, "reason" in data ? data.reason : "sent"];
    }),
  );
}

/** Triggers a run for recipients, and waits for the run's end if it started. */
async function write(
  { runner }: Awaited<ReturnType<OutreachHarness["start"]>>,
  recipients: readonly Recipient[],
  more: {
    readonly dryRun?: boolean;
    readonly selection?: { readonly limit?: number; readonly campaign?: string };
  } = {},
) {
  const triggered = await runner.trigger({ dryRun: false, metadata: METADATA, recipients, ...more });
  return { triggered, report: triggered.kind === "started" ? await triggered.done : undefined };
}

/** Network that calls `act` at its next request to send to the person, before it answers. */
function onSend(world: OutreachHarness, id: string, act: () => Promise<unknown>): OutreachContext["network"] {
  let isDone = false;
  return {
    ...world.network,
    async sendDm(token, recipientId, text) {
      if (recipientId === id && !isDone) {
        isDone = true;
        await act();
      }
      return world.network.sendDm(token, recipientId, text);
    },
  };
}

describe("a run for named recipients", () => {
  test("writes to them alone, by id or handle, and looks up unknown ones", async () => {
    await using world = await openOutreach("10", "11", "12");
    for (const id of ["20", "21"]) world.network.people.set(id, person(id));
    const instance = await world.start({ rules: OPEN, sources: [openSource("list"), openSource("followers")] });
    const named = [
      { id: "12" },
      { username: "USER_20" },
      { username: "user_12" },
      { id: "21" },
      { username: "no_such" },
    ];
    const { triggered, report } = await write(instance, named);
    expect(triggered).toMatchObject({
      kind: "started",
      expected: [
        { recipient: { id: "12" }, expected: "message" },
        { recipient: { username: "USER_20" }, expected: "message" },
        { expected: "message" },
        { expected: "message" },
        { expected: "message" },
      ],
    });
    expect(report).toMatchObject({ reason: "completed", sent: 3, skipped: 1 });
    expect(new Set(reached(world))).toEqual(new Set(["12", "20", "21"]));
    expect(await outcomes(world)).toEqual({
      "12": "sent",
      "20": "sent",
      "21": "sent",
      "@no_such": "invalid_recipient",
    });
    expect(await world.events("RunStarted")).toMatchObject([{ data: { recipients: 5 } }]);
    expect(await world.events("SourceRead")).toEqual([]);
  });

  test.each(["default", "spring"])(
    "looks up a handle that no contact has, because the log may hold a consent under its id, in campaign %s",
    async (campaign) => {
      await using world = await openOutreach();
      for (const id of ["30", "31", "32"]) world.network.people.set(id, person(id));
      const evidence = { consent_at: "2026-02-01", consent_source: "fair" };
      await world.append([
        { type: "ConsentRecorded", data: { recipient: { id: "30" }, basis: "opt_in", ...evidence } },
        addedOf({ username: "user_32" }, { basis: "none" }),
        { type: "CampaignCreated", data: { name: "spring", text: "Hi {{name}}", audience: { basis: "opt_in" } } },
      ]);
      const instance = await world.start();
      const selection = campaign === "default" ? {} : { campaign };
      const named = ["user_30", "user_31", "user_32"].map((username) => ({ username }));
      const { report } = await write(instance, named, { selection });
      expect(report).toMatchObject({ reason: "completed", sent: 1 });
      expect(reached(world)).toEqual(["30"]);
      const others = campaign === "default" ? "no_consent" : "not_in_audience";
      expect(await outcomes(world)).toEqual({ "30": "sent", "31": others, "@user_32": others });
      expect(world.network.reads).toEqual(["usersByUsername user_30,user_31"]);
    },
  );

  test("says at once which of them the log rules out, and records it even if it did before", async () => {
    await using world = await openOutreach("10", "11", "12", "13", "14");
    world.network.answers.push(undefined, "recipient_closed");
    await world.append([addedOf({ id: "12" }, { basis: "none" })]);
    await world.append([{ type: "RecipientSuppressed", data: { recipient: { id: "13" }, reason: "by_hand" } }]);
    const instance = await world.start({ rules: { ...RULES, dailyLimit: 2 } });
    await instance.run({ selection: { limit: 1 } });
    await instance.run();
    const again = await write(
      instance,
      ["10", "11", "12", "13", "14"].map((id) => ({ id })),
    );
    expect(again.triggered).toMatchObject({ kind: "daily_limit_reached" });
    expect(await world.events("RunRefused")).toMatchObject([{ data: { recipients: 5 } }]);
    const other = await world.start();
    const { triggered, report } = await write(
      other,
      ["10", "11", "12", "13"].map((id) => ({ id })),
    );
    expect(
      triggered.kind === "started" && triggered.expected?.map(({ expected, reason }) => [expected, reason]),
    ).toEqual([
      ["no_message", "already_contacted"],
      ["no_message", "failed_before"],
      ["no_message", "no_consent"],
      ["no_message", "suppressed"],
    ]);
    expect(report).toMatchObject({ reason: "completed", sent: 0, skipped: 3 });
    expect(await world.events("RecipientNotReached")).toMatchObject([
      { data: { recipient: { id: "11" }, reason: "failed_before" } },
    ]);
  });

  test("keeps its limit, and says who was not reached", async () => {
    await using world = await openOutreach("10", "11", "12");
    const instance = await world.start();
    const { triggered, report } = await write(instance, [{ id: "12" }, { id: "11" }, { id: "10" }], {
      selection: { limit: 2 },
    });
    expect(triggered).toMatchObject({ expected: [{}, {}, { expected: "no_message", reason: "limit_reached" }] });
    expect(report).toMatchObject({ reason: "limit_reached", sent: 2 });
    expect(await outcomes(world)).toEqual({ "12": "sent", "11": "sent", "10": "limit_reached" });
  });

  test("has a dry run, which gives each an outcome too", async () => {
    await using world = await openOutreach("10", "11", "12");
    await world.append([
      {
        type: "RecipientHeld",
        data: { recipient: { id: "11" }, message_id: "m", received_at: "2026-03-01T07:00:00.000Z" },
      },
    ]);
    const instance = await world.start();
    await write(instance, [{ id: "12" }]);
    const { report } = await write(instance, [{ id: "10" }, { id: "11" }, { id: "12" }], { dryRun: true });
    expect(report?.preview).toMatchObject({
      would_send: [{ recipient: { id: "10" } }],
      would_skip: [{ reason: "already_contacted" }],
    });
    expect(await world.events("DryRunRecipientListed")).toHaveLength(2);
    expect(await world.events("RecipientNotReached")).toMatchObject([
      { data: { recipient: { id: "11" }, reason: "held" } },
    ]);
    expect(reached(world)).toEqual(["12"]);
  });
});

describe.each(LOG_ENGINES)("recipients who join a run in progress, in a log %s", (engine) => {
  test("come next, at the pace of the run, from another instance too", async () => {
    await using world = await openOutreachOn(engine, "10", "11", "12", "13");
    world.network.people.set("20", person("20"));
    const other = await world.start({ rules: OPEN });
    const joins: Triggered[] = [];
    const join = async () => {
      joins.push((await write(other, [{ username: "user_20" }, { id: "13" }])).triggered);
    };
    const { run, context } = await world.start({ rules: OPEN, spacingMs: 60_000, network: onSend(world, "10", join) });
    const report = await run();
    expect(report).toMatchObject({ reason: "completed", sent: 5 });
    expect(joins).toMatchObject([{ kind: "joined", run_id: report.run_id, expected: [{ expected: "message" }, {}] }]);
    expect(reached(world)).toEqual(["10", "20", "13", "11", "12"]);
    const times = (await world.events("DirectMessageSent")).map(({ time }) => Date.parse(time));
    for (const [nth, at] of times.slice(1).entries()) expect(at - times[nth]!).toBeGreaterThanOrEqual(60_000);
    expect(await world.events("DirectMessageSkipped")).toEqual([]);
    expect(context.projector.state("run").current).toBeNull();
  });

  test("are reached by a run that was about to end, or start another one", async () => {
    await using world = await openOutreachOn(engine, "10");
    for (const id of ["20", "21"]) world.network.people.set(id, person(id));
    const instance = await world.start({ rules: OPEN });
    const { store } = instance.context.eventLog;
    const { append } = store;
    let joined: Promise<Triggered> | undefined;
    Object.assign(store, {
      append: async (...args: Parameters<typeof append>) => {
        if (joined === undefined && args[1].some(({ type }) => type === "RunFinished")) {
          joined = write(await world.start({ rules: OPEN }), [{ id: "20" }]).then(({ triggered }) => triggered);
          await joined;
        }
        return append(...args);
      },
    });
    const report = await instance.run();
    expect(report).toMatchObject({ reason: "completed", sent: 2 });
    expect(await joined).toMatchObject({ kind: "joined", run_id: report.run_id });
    expect((await write(instance, [{ id: "21" }])).triggered).toMatchObject({ kind: "started" });
    expect(reached(world)).toEqual(["10", "20", "21"]);
    expect(await world.events("RunFinished")).toHaveLength(2);
  });

  test("are answered by the same run when the request is repeated under its key", async () => {
    await using world = await openOutreachOn(engine, "10", "11");
    world.network.people.set("20", person("20"));
    const other = await world.start({ rules: OPEN });
    const key = { key: "one", digest: "d" };
    const ask = () => other.runner.trigger({ dryRun: false, metadata: METADATA, recipients: [{ id: "20" }], key });
    const joins: Triggered[] = [];
    const { run } = await world.start({
      rules: OPEN,
      network: onSend(world, "10", async () => joins.push(await ask(), await ask())),
    });
    const { run_id } = await run();
    expect(joins).toMatchObject([
      { kind: "joined", run_id },
      { kind: "joined", run_id },
    ]);
    expect(await ask()).toMatchObject({ kind: "started", run_id });
    expect(await world.events("RecipientRequested")).toHaveLength(1);
    expect(reached(world)).toEqual(["10", "20", "11"]);
  });
});

describe("recipients who join a run", () => {
  test("are judged by its limits, and learn why it did not reach them", async () => {
    await using world = await openOutreach("10", "11", "12");
    await world.append([addedOf({ id: "12" }, { basis: "none" })]);
    for (const id of ["20", "21"]) world.network.people.set(id, person(id));
    const instance = await world.start({ rules: OPEN });
    const named = [{ id: "20" }, { id: "11" }, { id: "12" }, { id: "10" }, { id: "21" }];
    const joins: Triggered[] = [];
    const join = async () => {
      joins.push((await write(instance, named)).triggered);
    };
    const { run } = await world.start({ rules: OPEN, network: onSend(world, "10", join) });
    expect(await run({ selection: { limit: 2, source: "list", basis: "opt_in" } })).toMatchObject({
      reason: "completed",
      sent: 2,
    });
    const expected = joins.flatMap((one) => ("expected" in one ? (one.expected ?? []) : []));
    expect(expected.map(({ expected: what, reason }) => [what, reason])).toEqual([
      ["no_message", "left_out"],
      ["message", undefined],
      ["no_message", "left_out"],
      ["no_message", "already_contacted"],
      ["no_message", "left_out"],
    ]);
    expect(await outcomes(world)).toEqual({
      "10": "already_contacted",
      "11": "sent",
      "12": "left_out",
      "20": "left_out",
      "21": "left_out",
    });
  });

  test("are skipped as contacted if they had their turn in it before", async () => {
    await using world = await openOutreach("10", "11", "12");
    const other = await world.start();
    const join = () => write(other, [{ id: "12" }]);
    const network = onSend(world, "10", join);
    const { run } = await world.start({
      network: onSend({ ...world, network: { ...world.network, ...network } }, "11", join),
    });
    expect(await run()).toMatchObject({ reason: "completed", sent: 3, skipped: 1 });
    expect(reached(world)).toEqual(["10", "12", "11"]);
    expect(await outcomes(world)).toMatchObject({ "12": "already_contacted" });
    expect(await world.events("RecipientNotReached")).toEqual([]);
  });

  test.each(["stop", "kill"] as const)("are told that it ended before their turn: %s", async (end) => {
    await using world = await openOutreach("10", "11");
    const other = await world.start();
    const act = async () => {
      await write(other, [{ id: "11" }]);
      if (end === "stop") void victim.runner[Symbol.asyncDispose]();
      else victim.die();
    };
    const victim = await world.start({ spacingMs: 60_000, network: onSend(world, "10", act) });
    const triggered = await victim.runner.trigger({ dryRun: false, metadata: METADATA });
    await (end === "stop" ? triggered.kind === "started" && triggered.done : victim.dead);
    if (end === "kill") {
      world.time.jump(60_000);
      // The lease of the killed run has expired, so a request can no longer join that run.
      expect((await write(other, [{ id: "11" }])).triggered).toMatchObject({ kind: "running" });
    }
    await other.runner.recover({ steal: true });
    const reason = end === "stop" ? "stopped" : "abandoned";
    expect(await world.events("RecipientNotReached")).toMatchObject([{ data: { recipient: { id: "11" }, reason } }]);
    expect((await write(other, [{ id: "11" }])).report).toMatchObject({ reason: "completed", sent: 1 });
  });

  test("wait for no sending window but that of their own time zone", async () => {
    await using world = await openOutreach();
    for (const [id, timezone] of Object.entries({ "10": "America/New_York", "11": "Asia/Tokyo" })) {
      world.network.people.set(id, person(id));
      await world.append([addedOf({ id }, { timezone })]);
    }
    // It is Sunday, 08:00 UTC: 17:00 in Tokyo, where this window is open, and 03:00 in New York, where it is closed.
    const hours = parseOpenHours("Sun 09:00-19:00") ?? [];
    const window: SendWindow = { text: "Sun 09:00-19:00", hours, zone: "recipient", whenClosed: "pause" };
    const { runner, projector, run } = await world.start({ rules: { ...RULES, window }, runMaxMs: 24 * 3_600_000 });
    let joined: Promise<Triggered> | undefined;
    projector.listen(({ type }) => {
      if (type === "RunPaused")
        joined ??= runner.trigger({ dryRun: false, metadata: METADATA, recipients: [{ id: "11" }] });
    });
    expect(await run({ recipients: [{ id: "10" }] })).toMatchObject({ reason: "completed", sent: 2 });
    expect(await joined).toMatchObject({ kind: "joined" });
    expect((await world.events("DirectMessageSent")).map(({ time }) => time.slice(11, 16))).toEqual(["08:00", "14:00"]);
  });

  test.each([
    ["with limits of their own", { selection: { limit: 1 } }, false],
    ["by a dry run", { dryRun: true }, false],
    ["during a dry run", {}, true],
  ])("do not join %s", async (_what, more, isDry) => {
    await using world = await openOutreach("10", "11");
    const other = await world.start();
    const answers: Triggered[] = [];
    const ask = async () => {
      answers.push((await write(other, [{ id: "11" }], more)).triggered);
    };
    const network = {
      ...world.network,
      usersById: async (...asked: Parameters<typeof world.network.usersById>) => {
        if (answers.length === 0) await ask();
        return world.network.usersById(...asked);
      },
    };
    const { run } = await world.start({ network });
    const { run_id } = await run({ dryRun: isDry });
    expect(answers).toEqual([{ kind: "running", run_id }]);
    expect(await world.events("RecipientRequested")).toEqual([]);
  });
});
