// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { parseOpenHours, type SendWindow } from "../../src/config/send-window.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { chooseVariant, parseTemplate } from "../../src/template/template.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../harness/in-process/social-network.ts";

const reached = ({ network }: OutreachHarness): string[] => network.accepted.map(({ recipientId }) => recipientId);

const HOUR_MS = 3_600_000;

/** Builds a sending window from its text. The simulated clock begins on a Sunday, 2026-03-01, at 08:00 UTC. */
const windowOf = (text: string, more: Partial<SendWindow> = {}): SendWindow => {
  const hours = text.split(", ").flatMap((entry) => parseOpenHours(entry) ?? []);
  return { text, hours, zone: "quota", whenClosed: "end", ...more };
};

describe("a run with a limit", () => {
  test("sends exactly that many messages, despite failures and skips", async () => {
    await using world = await openOutreach("10", "11", "12", "13", "14", "15");
    world.network.people.set("10", person("10", { receivesOurDm: false }));
    world.network.answers.push("recipient_closed", undefined, "recipient_closed");
    const { run } = await world.start();
    expect(await run({ selection: { limit: 2 } })).toMatchObject({ reason: "limit_reached", sent: 2, failed: 2 });
    expect(reached(world)).toEqual(["12", "14"]);
    expect(await world.events("RunStarted")).toMatchObject([{ data: { limit: 2 } }]);
  });

  test("counts a message in doubt", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ doubt: "delivered" });
    const { run } = await world.start();
    expect(await run({ selection: { limit: 2 } })).toMatchObject({ reason: "limit_reached", sent: 2 });
    expect(reached(world)).toEqual(["10", "11"]);
  });

  test("looks up no more recipients than its limit", async () => {
    await using world = await openOutreach("10", "11", "12");
    const { run } = await world.start();
    await run({ selection: { limit: 1 } });
    expect(world.network.reads).toEqual(["usersById 10"]);
  });

  test("ends with the day's quota if that is smaller", async () => {
    await using world = await openOutreach("10", "11", "12");
    const { run } = await world.start({ rules: { ...RULES, dailyLimit: 1 } });
    expect(await run({ selection: { limit: 2 } })).toMatchObject({ reason: "daily_limit_reached", sent: 1 });
  });

  test("has a dry run with the same limit", async () => {
    await using world = await openOutreach("10", "11", "12");
    const { run } = await world.start();
    const { preview } = await run({ dryRun: true, selection: { limit: 2 } });
    expect(preview).toMatchObject({ reason: "limit_reached", would_send: [{}, {}] });
  });

  test("leaves only the unsent messages to a repeat of its request", async () => {
    await using world = await openOutreach("10", "11", "12", "13", "14");
    const { run } = await world.start();
    const repeated = { key: { key: "one", digest: "d" }, selection: { limit: 3 } };
    world.network.answers.push(undefined, "unreachable");
    expect(await run(repeated)).toMatchObject({ reason: "network_unavailable", sent: 1 });
    expect(await run(repeated)).toMatchObject({ reason: "limit_reached", sent: 2 });
    expect((await world.events("RunStarted")).map(({ data }) => data.limit)).toEqual([3, 2]);
    const { runner } = await world.start();
    const third = await runner.trigger({ ...repeated, dryRun: false, metadata: METADATA });
    expect("done" in third && (await third.done)).toBeUndefined();
    expect(reached(world)).toHaveLength(3);
  });
});

test("an undelivered message in doubt counts toward the limit, also in a repeat", async () => {
  await using world = await openOutreach("10", "11", "12", "13");
  const { run } = await world.start();
  const repeated = { key: { key: "one", digest: "d" }, selection: { limit: 2 } };
  world.network.answers.push({ doubt: "lost" }, "unreachable");
  expect(await run(repeated)).toMatchObject({ reason: "network_unavailable", sent: 0, failed: 2 });
  expect(await run(repeated)).toMatchObject({ reason: "limit_reached", sent: 1 });
  expect((await world.events("RunStarted")).map(({ data }) => data.limit)).toEqual([2, 1]);
});

describe("a run with a selection", () => {
  test("records no skips of recipients outside the selection", async () => {
    await using world = await openOutreach("10", "11");
    world.network.people.set("12", person("12"));
    await world.append([addedOf({ id: "12" }, { basis: "none" })]);
    const { run } = await world.start();
    expect(await run({ selection: { basis: "dm_first" } })).toMatchObject({ reason: "completed", sent: 0, skipped: 0 });
    expect(await run({ selection: { basis: "opt_in" } })).toMatchObject({ sent: 2, skipped: 0 });
    expect(await world.events("DirectMessageSkipped")).toEqual([]);
  });

  test("by variant looks up no recipient of another variant", async () => {
    const template = parseTemplate("Hi {{name}}\n---\nHello {{name}}", undefined, "Autumn invite");
    const ids = ["10", "11", "12", "13", "14", "15"];
    const wanted = ids.filter((id) => chooseVariant(template, id).label === "B");
    await using world = await openOutreach(...ids);
    const { run } = await world.start({ rules: { ...RULES, template } });
    expect(await run({ selection: { variant: "B" } })).toMatchObject({ reason: "completed", sent: wanted.length });
    expect(reached(world)).toEqual(wanted);
    expect(world.network.reads).toEqual([`usersById ${wanted.join(",")}`]);
    const named = { template: template.id, template_name: "Autumn invite" };
    expect(await world.events("RunStarted")).toMatchObject([{ data: { rules: named } }]);
  });

  test("by source reads no other source", async () => {
    await using world = await openOutreach("10");
    world.network.people.set("11", person("11"));
    const sources = [openSource("list"), openSource("followers")];
    const { run } = await world.start({ sources, rules: { ...RULES, requireConsent: false } });
    expect(await run({ selection: { source: "list" } })).toMatchObject({ reason: "completed", sent: 1 });
    expect(world.network.reads).toEqual(["usersById 10"]);
    expect(await run({ selection: { source: "followers" } })).toMatchObject({ reason: "completed", sent: 1 });
    expect(reached(world)).toEqual(["10", "11"]);
  });

  test("leaves a page of followers for another read if it passed over some", async () => {
    const template = parseTemplate("Hi {{name}}\n---\nHello {{name}}");
    await using world = await openOutreach();
    const ids = ["10", "11", "12", "13", "14"];
    for (const id of ids) world.network.people.set(id, person(id));
    const rules = { ...RULES, template, requireConsent: false };
    const { run } = await world.start({ sources: [openSource("followers")], rules });
    const ofA = ids.filter((id) => chooseVariant(template, id).label === "A").length;
    expect(await run({ selection: { variant: "A" } })).toMatchObject({ reason: "completed", sent: ofA });
    expect(await run()).toMatchObject({ reason: "completed", sent: ids.length - ofA });
    expect(new Set(reached(world))).toEqual(new Set(ids));
  });
});

describe("a run outside the sending window", () => {
  test("is refused with the opening time if runs end there, as in a dry run", async () => {
    await using world = await openOutreach("10");
    const { run, runner } = await world.start({ rules: { ...RULES, window: windowOf("Mon-Fri 09:00-17:00") } });
    const opensAt = Date.parse("2026-03-02T09:00:00Z");
    const refused = { kind: "window_closed", opensAt } as const;
    expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual(refused);
    const until = "2026-03-02T09:00:00.000Z";
    expect(await world.events("RunRefused")).toMatchObject([{ data: { reason: "window_closed", until } }]);
    expect(await run({ dryRun: true })).toMatchObject({ reason: "window_closed", until, preview: { would_send: [] } });
    expect(await world.events("DryRunFinished")).toMatchObject([{ data: { reason: "window_closed", until } }]);
    expect(world.network.reads).toEqual([]);
  });

  test("is refused if the window closes before its start is appended", async () => {
    await using world = await openOutreach("10");
    const window = windowOf("Sun 00:00-08:01");
    const { context, runner } = await world.start({ rules: { ...RULES, window } });
    const { store } = context.eventLog;
    const { append } = store;
    Object.assign(store, {
      append: (...args: Parameters<typeof append>) => {
        store.append = append;
        world.time.jump(HOUR_MS);
        return append(...args);
      },
    });
    expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toMatchObject({ kind: "window_closed" });
    expect(await world.events("RunStarted")).toEqual([]);
  });

  test("waits if runs pause there, then sends within that day's quota", async () => {
    await using world = await openOutreach("10", "11", "12", "13");
    const window = windowOf("Sun 00:00-08:01, Mon 00:01-09:00", { whenClosed: "pause" });
    const rules = { ...RULES, dailyLimit: 2, window };
    const { run } = await world.start({ rules, spacingMs: 60_000, runMaxMs: 24 * HOUR_MS });
    expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 3 });
    const until = "2026-03-02T00:01:00.000Z";
    expect(await world.events("RunPaused")).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ reason: "window_closed", until }) }),
    );
    const attempts = await world.events("DirectMessageAttempted");
    expect(attempts.map(({ data }) => data.day)).toEqual(["2026-03-01", "2026-03-02", "2026-03-02"]);
  });

  test("ends with its time limit if that is earlier than the opening", async () => {
    await using world = await openOutreach("10");
    const rules = { ...RULES, window: windowOf("Mon 09:00-17:00", { whenClosed: "pause" }) };
    const { run } = await world.start({ rules });
    expect(await run()).toMatchObject({ reason: "time_limit", sent: 0 });
  });

  test("skips a recipient who opted out during the wait", async () => {
    await using world = await openOutreach("10", "11");
    const rules = { ...RULES, window: windowOf("Sun 09:00-17:00", { whenClosed: "pause" }) };
    const { run } = await world.start({ rules });
    world.network.receive("10", "stop", HOUR_MS / 2);
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, skipped: 1 });
    expect(reached(world)).toEqual(["11"]);
  });

  test("withdraws a message if the window closes during its wait, and sends it after the opening", async () => {
    await using world = await openOutreach("10");
    world.network.answers.push({ waitMs: HOUR_MS });
    const window = windowOf("Sun 08:00-08:30, Sun 10:00-11:00", { whenClosed: "pause" });
    const { run } = await world.start({ rules: { ...RULES, window } });
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1 });
    const detail = "the sending window closed before the message went out";
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason: "withdrawn", detail, frees_quota: true, retry: true } },
    ]);
    const [{ time } = { time: "" }] = await world.events("DirectMessageSent");
    // The wait ends a second after the opening, in case the service's clock is ahead of the log's.
    expect(time).toBe("2026-03-01T10:00:01.000Z");
  });

  test("sends first to recipients with an open window in their zone", async () => {
    await using world = await openOutreach();
    const zones = { "10": "America/New_York", "11": "Asia/Tokyo", "12": undefined };
    for (const [id, timezone] of Object.entries(zones)) {
      world.network.people.set(id, person(id));
      await world.append([addedOf({ id }, timezone === undefined ? {} : { timezone })]);
    }
    const window = windowOf("Sun 09:00-19:00", { zone: "recipient" });
    const ending = await world.start({ rules: { ...RULES, window } });
    // It is 08:00 UTC: 17:00 in Tokyo, where the window is open, and 03:00 in New York, where it is closed.
    const until = "2026-03-01T09:00:00.000Z";
    expect(await ending.run()).toMatchObject({ reason: "window_closed", until, sent: 1 });
    const rules = { ...RULES, window: { ...window, whenClosed: "pause" } } as const;
    const pausing = await world.start({ rules, runMaxMs: 24 * HOUR_MS });
    expect(await pausing.run()).toMatchObject({ reason: "completed", sent: 2 });
    expect(reached(world)).toEqual(["11", "12", "10"]);
    expect((await world.events("DirectMessageSent")).map(({ time }) => time.slice(11, 16))).toEqual([
      "08:00",
      "09:00",
      "14:00",
    ]);
  });

  test("continues with recipients after their window opens during the run", async () => {
    await using world = await openOutreach("10");
    world.network.people.set("11", person("11"));
    await world.append([addedOf({ id: "11" }, { timezone: "Europe/Berlin" })]);
    world.network.answers.push({ waitMs: HOUR_MS / 12 });
    const window = windowOf("Sun 08:01-19:00", { zone: "recipient" });
    const { run } = await world.start({ rules: { ...RULES, window } });
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
    expect(reached(world)).toEqual(["11", "10"]);
  });

  test("reads no followers until the window opens", async () => {
    await using world = await openOutreach();
    world.network.people.set("10", person("10"));
    const window = windowOf("Sun 09:00-19:00", { zone: "recipient" });
    const rules = { ...RULES, window, requireConsent: false };
    const { run } = await world.start({ sources: [openSource("followers")], rules });
    expect(await run()).toMatchObject({ reason: "window_closed", usage: { followers: 0 } });
    world.time.jump(HOUR_MS);
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  });

  test("looks up an unknown handle once, despite several waits", async () => {
    await using world = await openOutreach("10");
    await world.append([addedOf({ username: "unknown" }), addedOf({ id: "11" }, { timezone: "America/New_York" })]);
    world.network.people.set("11", person("11"));
    const window = windowOf("Sun 08:00-19:00", { zone: "recipient", whenClosed: "pause" });
    const { run } = await world.start({ rules: { ...RULES, window }, runMaxMs: 24 * HOUR_MS });
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, skipped: 1 });
    expect(world.network.reads.filter((read) => read.startsWith("usersByUsername"))).toHaveLength(1);
  });

  test("can be stopped during the wait", async () => {
    await using world = await openOutreach("10");
    const rules = { ...RULES, window: windowOf("Mon 09:00-17:00", { whenClosed: "pause" }) };
    const { runner, run, projector } = await world.start({ rules, runMaxMs: 48 * HOUR_MS });
    projector.listen(({ type }) => {
      if (type === "RunPaused") void runner[Symbol.asyncDispose]();
    });
    expect(await run()).toMatchObject({ reason: "stopped", sent: 0 });
    expect(await world.events("RunPaused")).toMatchObject([{ data: { reason: "window_closed" } }]);
    expect(world.time.now()).toBeLessThan(Date.parse("2026-03-02T09:00:00Z"));
  });
});

test("a run ends once too many of its messages failed, and announces it", async () => {
  const ids = Array.from({ length: 20 }, (_, nth) => String(10 + nth));
  await using world = await openOutreach(...ids);
  world.network.answers.push(...ids.map((_id, nth) => (nth % 3 === 0 ? ("recipient_closed" as const) : undefined)));
  const { run, announced } = await world.start({ rules: { ...RULES, stopAfterFailures: 0.3 } });
  expect(await run()).toMatchObject({ reason: "too_many_failures", sent: 6, failed: 4 });
  expect(announced).toEqual(["outreach stopped: too_many_failures"]);
});
