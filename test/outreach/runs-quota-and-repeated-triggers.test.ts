// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { KeyReused } from "eventstore-lite/testing";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => String(from + index));

test("each recipient who consented gets one message, recorded as intent and outcome", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start();

  expect(await run()).toMatchObject({ reason: "completed", sent: 3, skipped: 0, failed: 0, in_doubt: 0 });
  expect(world.network.accepted.map(({ recipientId, text }) => [recipientId, text])).toEqual([
    ["10", "Hi Name 10"],
    ["11", "Hi Name 11"],
    ["12", "Hi Name 12"],
  ]);
  const told = await world.events("RunStarted", "DirectMessageAttempted", "DirectMessageSent", "RunFinished");
  expect(told.map(({ type }) => type)).toEqual([
    "RunStarted",
    ...["10", "11", "12"].flatMap(() => ["DirectMessageAttempted", "DirectMessageSent"] as const),
    "RunFinished",
  ]);
  expect(told[1]).toMatchObject({ data: { day: "2026-03-01", text: "Hi Name 10" }, meta: METADATA });
});

test("a second run sends nothing, and records each skip once", async () => {
  await using world = await openOutreach();
  world.network.people.set("10", person("10"));
  world.network.people.set("11", person("11", { protected: true, receivesOurDm: false }));
  world.network.people.set("12", person("12", { receivesOurDm: false }));
  await world.list("10", "11", "12", "404");
  const { run, projector } = await world.start();

  expect(await run()).toMatchObject({ sent: 1, skipped: 3 });
  expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
  expect(await run()).toMatchObject({ sent: 0, skipped: 0 });
  const skips = await world.events("DirectMessageSkipped");
  expect(skips.map(({ data }) => [data.recipient.id, data.reason])).toEqual([
    ["11", "protected"],
    ["12", "cannot_receive_dm"],
    ["404", "invalid_recipient"],
    ["10", "already_contacted"],
  ]);
  expect(projector.state("stats")).toEqual({ sent: 1, skipped: 4, failed: 0, contacted: 1 });
});

test("exactly 100 of 130 recipients get a message today, 30 tomorrow", async () => {
  await using world = await openOutreach(...numbers(101, 230));
  const { run, runner } = await world.start();

  expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 100, skipped: 0, failed: 0 });
  expect(world.network.accepted).toHaveLength(100);
  // A single read returns all 100 recipients. The run looks up no more of them than the quota has places for, because
  // each read costs money.
  expect(world.network.reads).toHaveLength(1);
  expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "daily_limit_reached" });
  expect(await world.events("RunRefused")).toMatchObject([
    { data: { reason: "daily_limit_reached", day: "2026-03-01", used: 100 } },
  ]);
  expect(world.network.accepted).toHaveLength(100);

  world.time.jump(16 * 3_600_000);
  expect(await run()).toMatchObject({ reason: "completed", sent: 30 });
  expect(new Set(world.network.accepted.map(({ recipientId }) => recipientId)).size).toBe(130);
});

test("a clock set back to yesterday does not restore the quota", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run, runner } = await world.start({ rules: { ...RULES, dailyLimit: 2 } });
  expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 2 });
  world.time.jump(-24 * 3_600_000);
  expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "daily_limit_reached" });
});

test("the quota day is the calendar day in the quota's time zone", async () => {
  await using world = await openOutreach("10", "11");
  const { run } = await world.start({ rules: { ...RULES, dailyLimit: 1 }, timezone: "Pacific/Kiritimati" });
  await run();
  // In the quota's zone, which is 14 hours ahead of UTC, the first run is at 22:00. Three hours later the next day has
  // begun there.
  world.time.jump(3 * 3_600_000);
  await run();
  const attempts = await world.events("DirectMessageAttempted");
  expect(attempts.map(({ data }) => data.day)).toEqual(["2026-03-01", "2026-03-02"]);
});

test("a dry run predicts a run, sends nothing, and records no skip", async () => {
  await using world = await openOutreach();
  world.network.people.set("10", person("10"));
  world.network.people.set("11", person("11", { receivesOurDm: false }));
  await world.list("10", "11", "404");
  await world.append([{ type: "RecipientSuppressed", data: { recipient: { id: "404" }, reason: "by_hand" } }]);
  const { run, projector } = await world.start();

  const { preview, ...report } = await run({ dryRun: true });
  expect(report).toMatchObject({ reason: "completed", sent: 0, skipped: 0, failed: 0 });
  expect(preview).toEqual({
    reason: "completed",
    would_send: [{ recipient: { id: "10", username: "user_10" }, text: "Hi Name 10", variant: "A" }],
    would_skip: [
      { recipient: { id: "404" }, reason: "suppressed" },
      { recipient: { id: "11", username: "user_11" }, reason: "cannot_receive_dm" },
    ],
    variants: [{ variant: "A", text: "Hi Name 10" }],
    estimate: { sends: 1, users: 2, followers: 0, posts: 0, messages: 0, usd: 0.035 },
  });
  expect(world.network.asked).toEqual([]);
  expect(await world.events("DirectMessageSkipped", "DirectMessageAttempted")).toEqual([]);
  expect(await world.events("DryRunFinished")).toMatchObject([{ data: { would_send: 1, would_skip: 2 } }]);
  expect(projector.state("stats")).toEqual({ sent: 0, skipped: 0, failed: 0, contacted: 0 });
  expect(projector.state("run").current).toBeNull();
});

test("a dry run stops at the day's quota, and also starts if that is used up", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start({ rules: { ...RULES, dailyLimit: 2 } });
  const before = await run({ dryRun: true });
  expect(before.preview).toMatchObject({ reason: "daily_limit_reached", would_send: [{}, {}] });
  await run();
  const asked = world.network.reads.length;
  expect((await run({ dryRun: true })).preview).toMatchObject({ reason: "daily_limit_reached", would_send: [] });
  expect(world.network.reads).toHaveLength(asked);
});

test("a recipient listed by handle and by id gets one message and no skip", async () => {
  await using world = await openOutreach("10");
  const row = { recipient: { username: "USER_10" }, basis: "opt_in", fields: {}, source: "list" } as const;
  await world.append([{ type: "RecipientAdded", data: row }]);
  const { run } = await world.start();
  expect((await run({ dryRun: true })).preview).toMatchObject({ would_send: [{}], would_skip: [] });
  expect(await run()).toMatchObject({ sent: 1, skipped: 0 });
  expect(world.network.accepted).toHaveLength(1);
});

test("a trigger repeated with its key answers with the first run and sends nothing twice", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11"]) world.network.people.set(id, person(id));
  await world.list("10");
  const { runner } = await world.start();
  const trigger = () => runner.trigger({ dryRun: false, metadata: METADATA, key: { key: "monday", digest: "{}" } });
  const first = await trigger();
  if (first.kind === "started") await first.done;
  await world.list("11");
  expect(await trigger()).toMatchObject({ kind: "started", run_id: "run_id" in first ? first.run_id : "" });
  expect(world.network.accepted).toHaveLength(1);
  expect(await world.events("RunStarted")).toHaveLength(1);
});

test("a trigger repeated with its key after an outage starts a second run, but no third", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push("unreachable");
  const { runner } = await world.start();
  const trigger = async () => {
    const triggered = await runner.trigger({
      dryRun: false,
      metadata: METADATA,
      key: { key: "monday", digest: "run" },
    });
    if (triggered.kind !== "started") throw new Error(triggered.kind);
    return { id: triggered.run_id, reason: (await triggered.done)?.reason };
  };
  const [first, second] = [await trigger(), await trigger()];
  expect([first.reason, second.reason]).toEqual(["network_unavailable", "completed"]);
  expect(await trigger()).toEqual({ id: second.id, reason: undefined });
  expect(await world.events("RunStarted")).toHaveLength(2);
});

test("a dry run repeated with its key is executed again", async () => {
  await using world = await openOutreach();
  const { runner } = await world.start();
  for (const _ of [1, 2]) {
    const triggered = await runner.trigger({ dryRun: true, metadata: METADATA, key: { key: "look", digest: "{}" } });
    expect(triggered.kind === "started" && (await triggered.done)).toMatchObject({ reason: "completed" });
  }
});

test("a dry run's key starts no run, and a run's key starts no dry run", async () => {
  await using world = await openOutreach("10");
  const { runner } = await world.start();
  const trigger = async (dryRun: boolean, key: string) => {
    const triggered = await runner.trigger({ dryRun, metadata: METADATA, key: { key, digest: String(dryRun) } });
    return triggered.kind === "started" ? await triggered.done : triggered;
  };
  await trigger(true, "look");
  expect(await trigger(false, "look").catch((fault: unknown) => fault)).toBeInstanceOf(KeyReused);
  expect(world.network.accepted).toEqual([]);
  expect(await trigger(false, "monday")).toMatchObject({ sent: 1 });
  expect(await trigger(true, "monday").catch((fault: unknown) => fault)).toBeInstanceOf(KeyReused);
});

test("a suppression between the look-up and the intent prevents the message", async () => {
  await using world = await openOutreach("10", "11");
  const { network } = world;
  const suppressing = {
    ...network,
    async usersById(token: string, ids: readonly string[]) {
      const found = await network.usersById(token, ids);
      await world.append([
        { type: "RecipientSuppressed", data: { recipient: { username: "user_11" }, reason: "opt_out" } },
      ]);
      return found;
    },
  };
  const { run } = await world.start({ network: suppressing });
  expect(await run()).toMatchObject({ sent: 1, skipped: 1 });
  expect(network.asked).toEqual(["10"]);
});

test("a suppression during the append of the intent prevents the message", async () => {
  await using world = await openOutreach("10", "11");
  const { context, run } = await world.start();
  const { store } = context.eventLog;
  const { append } = store;
  let suppressed = false;
  const suppressing: typeof append = async (stream, events, options) => {
    if (events[0]?.type === "DirectMessageAttempted" && !suppressed) {
      suppressed = true;
      await world.append([{ type: "RecipientSuppressed", data: { recipient: { id: "10" }, reason: "opt_out" } }]);
    }
    return append(stream, events, options);
  };
  Object.assign(store, { append: suppressing });
  expect(await run()).toMatchObject({ sent: 1, skipped: 1 });
  expect(world.network.asked).toEqual(["11"]);
});

test("no run starts without an account", async () => {
  await using world = await openOutreach();
  await world.append([{ type: "AccountUnlinked", data: { user_id: "1", revoked: true } }]);
  const { runner } = await world.start();
  expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "not_authorized" });
  expect(await runner.trigger({ dryRun: true, metadata: METADATA })).toEqual({ kind: "not_authorized" });
});

const HOUR_MS = 3_600_000;

test.each([2 * HOUR_MS, -HOUR_MS])(
  "no run starts if the machine's clock differs by %d ms from the log's",
  async (skewMs) => {
    await using world = await openOutreach("10");
    const { runner } = await world.start({ skewMs: () => skewMs });
    for (const dryRun of [false, true])
      expect(await runner.trigger({ dryRun, metadata: METADATA })).toEqual({ kind: "clock_skewed", skewMs });
    expect(world.network.accepted).toEqual([]);
    expect((await world.events("RunRefused")).map(({ data }) => data.reason)).toEqual(["clock_skewed", "clock_skewed"]);
    const { run } = await world.start({ skewMs: () => 4 * 60_000 });
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  },
);

test("a clock change during a run ends it, and is announced", async () => {
  await using world = await openOutreach("10", "11");
  const { run, announced } = await world.start({
    skewMs: () => (world.network.accepted.length === 0 ? 0 : -26 * HOUR_MS),
  });
  expect(await run()).toMatchObject({ reason: "clock_skewed", sent: 1, failed: 0 });
  expect(announced).toEqual(["outreach stopped: clock_skewed"]);
});

test("a clock change between intent and request withdraws the message, which a later run sends", async () => {
  await using world = await openOutreach("10");
  let isMoved = true;
  const first = await world.start();
  const { run } = await world.start({
    skewMs: () => (isMoved && first.projector.state("run").open.size > 0 ? HOUR_MS : 0),
  });
  expect(await run()).toMatchObject({ reason: "completed", sent: 0, failed: 1 });
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { reason: "withdrawn", retry: true, frees_quota: true } },
  ]);
  isMoved = false;
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
});
