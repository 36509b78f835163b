// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { READ_ATTEMPTS_MAX } from "../../src/outreach/pacing-and-retries.ts";
import { person } from "../harness/in-process/social-network.ts";
import { SILENT } from "../harness/in-process/temporary-log.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";

describe("a message that the network refuses", () => {
  const stops = ["credits_depleted", "usage_capped", "sender_restricted", "missing_scope"] as const;

  test.each(stops)("with %s ends the run, is announced, and is sent by a later run", async (stop) => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ stop });
    const { run, announced, projector } = await world.start();
    expect(await run()).toMatchObject({ reason: stop, sent: 0, failed: 1 });
    expect(world.network.asked).toEqual(["10"]);
    expect(announced).toEqual([`outreach stopped: ${stop}`]);
    expect(projector.state("quota").days.get("2026-03-01")).toBe(0);
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  });

  test.each([
    // Only X's answer to this message rejects the token, and no other part of the service notices. So the run's end
    // itself tells the operator.
    ["unauthorized", "not_authorized", ["outreach stopped: not_authorized"]],
    ["unreachable", "network_unavailable", []],
  ] as const)("with %s ends the run as %s, and is sent by a later run", async (answer, reason, told) => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push(answer);
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason, sent: 0, failed: 1 });
    expect(announced).toEqual([...told]);
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  });

  test.each(["recipient_closed", "rejected"] as const)(
    "with %s closes the recipient, and the run continues",
    async (answer) => {
      await using world = await openOutreach("10", "11", "12");
      world.network.answers.push(answer);
      const { run, projector } = await world.start();
      expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 1 });
      expect(projector.state("quota").days.get("2026-03-01")).toBe(2);
      // The log already contains the failed message, so the run neither tries it nor records it again.
      expect(await run()).toMatchObject({ sent: 0, skipped: 2, failed: 0 });
      expect(world.network.asked).toEqual(["10", "11", "12"]);
    },
  );
});

describe("a 429", () => {
  test("pauses the run, which then repeats the same message", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: 15 * 60_000 }, { waitMs: 60_000 });
    const { run } = await world.start();
    const from = world.time.now();
    expect(await run()).toMatchObject({ reason: "completed", sent: 3, failed: 0 });
    expect(world.network.asked).toEqual(["10", "10", "10", "11", "12"]);
    expect(await world.events("DirectMessageAttempted")).toHaveLength(3);
    expect(world.network.accepted[0]?.createdAt).toBe(from + 16 * 60_000);
  });

  test("with a wait in the past delays the retry by a second", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: -5_000 }, { waitMs: 0 });
    const from = world.time.now();
    const { run } = await world.start();
    await run();
    expect(world.network.accepted[0]?.createdAt).toBe(from + 2_000);
  });

  test("beyond midnight moves the message to the next day's quota", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.time.jump(Date.parse("2026-03-01T23:50:00Z") - world.time.now());
    world.network.answers.push({ waitMs: 900_000 });
    const { run } = await world.start({ rules: { ...RULES, dailyLimit: 2 } });
    expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 2, failed: 1 });
    const attempts = await world.events("DirectMessageAttempted");
    expect(attempts.map(({ data }) => [data.recipient.id, data.day])).toEqual([
      ["10", "2026-03-01"],
      ["10", "2026-03-02"],
      ["11", "2026-03-02"],
    ]);
  });

  test("beyond the time limit withdraws the message, which a later run sends", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: 900_000 });
    const { run, projector } = await world.start({ runMaxMs: 600_000 });
    expect(await run()).toMatchObject({ reason: "time_limit", sent: 0, failed: 1 });
    expect(projector.state("quota").days.get("2026-03-01")).toBe(0);
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  });
});

describe("a failed read", () => {
  test.each([
    [
      "unauthorized",
      new SocialError("unauthorized", "told so"),
      "not_authorized",
      ["outreach stopped: not_authorized"],
    ],
    ["unavailable", new SocialError("unavailable", "told so"), "network_unavailable", []],
    ["rejected", new SocialError("rejected", "told so"), "request_rejected", ["outreach stopped: request_rejected"]],
    [
      "stopped",
      new SocialError("stopped", "told so", { stop: "credits_depleted" }),
      "credits_depleted",
      ["outreach stopped: credits_depleted"],
    ],
  ] as const)("with the error %s ends the run", async (_kind, fault, reason, told) => {
    await using world = await openOutreach("10", "11", "12");
    const times = fault.kind === "unavailable" ? READ_ATTEMPTS_MAX : 1;
    world.network.faults.push(...Array.from({ length: times }, () => fault));
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason, sent: 0, skipped: 0, failed: 0 });
    expect(announced).toEqual([...told]);
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  });

  test("with a 429 is retried after the wait", async () => {
    await using world = await openOutreach("10", "11", "12");
    const from = world.time.now();
    world.network.faults.push(new SocialError("rate_limited", "wait", { retryAt: from + 900_000 }));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
    expect(world.network.accepted[0]?.createdAt).toBe(from + 900_000);
  });

  test("with a 429 beyond the time limit ends the run", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.faults.push(new SocialError("rate_limited", "wait", { retryAt: world.time.now() + 900_000 }));
    const { run } = await world.start({ runMaxMs: 600_000 });
    expect(await run()).toMatchObject({ reason: "time_limit", sent: 0 });
    expect(world.network.reads).toHaveLength(1);
  });

  test("with a 429 ends a dry run without a wait", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.faults.push(new SocialError("rate_limited", "wait", { retryAt: world.time.now() + 900_000 }));
    const { run } = await world.start();
    expect((await run({ dryRun: true })).preview).toMatchObject({ reason: "network_unavailable", would_send: [] });
  });
});

test("a text that the network rejects for three recipients ends the run", async () => {
  await using world = await openOutreach();
  const ids = Array.from({ length: 10 }, (_, number) => String(10 + number));
  for (const id of ids) world.network.people.set(id, person(id));
  await world.list(...ids);
  for (const _ of ids) world.network.answers.push("rejected");
  const { run, announced } = await world.start();
  expect(await run()).toMatchObject({ reason: "request_rejected", failed: 3 });
  expect(announced).toEqual(["outreach stopped: request_rejected"]);
});

test("a run does not wait after its last message", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start({ spacingMs: 60 * 60_000 });
  const from = world.time.now();
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  expect(world.time.now() - from).toBeLessThan(121 * 60_000);
});

test("a recipient with closed DMs is looked up once, and again after a new import", async () => {
  await using world = await openOutreach("10", "11", "12");
  world.network.people.set("11", person("11", { receivesOurDm: false }));
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, skipped: 1 });
  await run();
  await world.list("11");
  expect(await run()).toMatchObject({ skipped: 1 });
  expect(world.network.reads.filter((read) => read.startsWith("users"))).toEqual([
    "usersById 10,11,12",
    "usersById 11",
  ]);
});

test("a run ends when another account is linked", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start({
    network: {
      ...world.network,
      async sendDm(...asked) {
        const result = await world.network.sendDm(...asked);
        const user = { id: "2", username: "others", name: "Others" };
        await world.append([
          { type: "AccountUnlinked", data: { user_id: "1", revoked: true } },
          { type: "AccountAuthorized", data: { user, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" } },
        ]);
        return result;
      },
    },
  });
  expect(await run()).toMatchObject({ reason: "not_authorized", sent: 1 });
  expect(world.network.asked).toHaveLength(1);
});

test("an internal fault ends the run, and the next trigger starts another", async () => {
  await using world = await openOutreach("10", "11", "12");
  let broken = true;
  const { run } = await world.start({
    network: {
      ...world.network,
      usersById: (token, ids) => (broken ? Promise.reject(new TypeError("ours")) : world.network.usersById(token, ids)),
    },
  });
  expect(await run()).toMatchObject({ reason: "fault", sent: 0 });
  broken = false;
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
});

test("a run's log lines name the request that started it, and its trace", async () => {
  await using world = await openOutreach("10");
  const lines: object[] = [];
  const warn = (message: string, fields: object = {}): void => void lines.push({ message, ...fields });
  const credentials = {
    use: () => Promise.reject(new SocialError("rejected", "no such list")),
    send: () => Promise.reject(new SocialError("rejected", "no such list")),
  };
  const { runner } = await world.start({ credentials, logger: { ...SILENT, warn } });
  const trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${trace_id}-00f067aa0ba902b7-01`;
  const triggered = await runner.trigger({
    dryRun: false,
    metadata: { caller: "ops", request_id: "r-1", traceparent },
  });
  if (triggered.kind !== "started") throw new Error(triggered.kind);
  await triggered.done;
  const [line] = lines;
  expect(line).toMatchObject({ message: "the network did not answer the run", request_id: "r-1", trace_id });
});
