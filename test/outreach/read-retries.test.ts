// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { READ_ATTEMPTS_MAX } from "../../src/outreach/pacing-and-retries.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";

const down = new SocialError("unavailable", "X answered 503");

describe("a 5xx on a read", () => {
  test.each(["faults", "inboxFaults"] as const)("is retried, and the run continues: %s", async (which) => {
    await using world = await openOutreach("10", "11");
    world.network[which].push(down, down);
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
    const pauses = await world.events("RunPaused");
    expect(pauses.map(({ data }) => data.reason)).toContain("network_unavailable");
  });

  test("is retried on a later page of a source", async () => {
    await using world = await openOutreach("10", "11");
    world.network.faults.push(undefined, down);
    world.network.pageMax = 1;
    const sources = [openSource("followers")];
    const { run } = await world.start({ sources, rules: { ...RULES, requireConsent: false } });
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
    expect(world.network.reads).toEqual(["followers ", "followers 1", "followers 1"]);
  });

  test("ends the run after a bounded number of retries with growing waits", async () => {
    await using world = await openOutreach("10", "11");
    for (let fault = 0; fault < 100; fault++) world.network.faults.push(down);
    const asked: number[] = [];
    const { usersById } = world.network;
    world.network.usersById = (token, ids) => {
      asked.push(world.time.now());
      return usersById(token, ids);
    };
    const { run, announced } = await world.start({ random: () => 1 });
    expect(await run()).toMatchObject({ reason: "network_unavailable", sent: 0 });
    expect(asked).toHaveLength(READ_ATTEMPTS_MAX);
    const waits = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(waits).toEqual([2_000, 8_000, 32_000, 120_000, 120_000, 120_000]);
    expect(announced).toEqual([]);
  });

  test("is not retried beyond the run's time limit", async () => {
    await using world = await openOutreach("10", "11");
    for (let fault = 0; fault < 100; fault++) world.network.faults.push(down);
    const { run } = await world.start({ runMaxMs: 60_000 });
    const from = world.time.now();
    expect(await run()).toMatchObject({ reason: "time_limit", sent: 0 });
    expect(world.time.now() - from).toBe(60_000);
  });

  test("is retried by a dry run for at most ten seconds", async () => {
    await using world = await openOutreach("10", "11");
    world.network.faults.push(down);
    world.network.inboxFaults.push(down);
    const { run } = await world.start({ random: () => 1 });
    expect((await run({ dryRun: true })).preview).toMatchObject({
      reason: "completed",
      would_send: [{ recipient: { id: "10" } }, { recipient: { id: "11" } }],
    });
    for (let fault = 0; fault < 100; fault++) world.network.faults.push(down);
    const from = world.time.now();
    expect((await run({ dryRun: true })).preview).toMatchObject({ reason: "network_unavailable" });
    expect(world.time.now() - from).toBeLessThanOrEqual(10_000);
  });

  test("on the conversation does not leave a message in doubt", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "delivered" });
    world.network.faults.push(undefined, down);
    const { run } = await world.start();
    expect(await run()).toMatchObject({ sent: 2, in_doubt: 0 });
  });
});

test("a run with spacing records the time of the next message, without RunPaused", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start({ spacingMs: 90_000 });
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  const sent = await world.events("DirectMessageSent");
  const times = sent.map(({ time, data }) => [Date.parse(time), Date.parse(data.next_at ?? "")]);
  for (const [at, next] of times) expect(next! - at!).toBe(90_000);
  expect(times[1]![0]).toBeGreaterThanOrEqual(times[0]![1]!);
  expect(await world.events("RunPaused")).toEqual([]);
});
