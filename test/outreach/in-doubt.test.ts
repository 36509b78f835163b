// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { QUICK_ATTEMPTS_MAX } from "../../src/outreach/pacing-and-retries.ts";
import { OWN, person } from "../harness/in-process/social-network.ts";
import { openOutreach } from "../harness/in-process/simulated-outreach-processes.ts";

const MINUTE_MS = 60_000;

/** Records when a run reads a conversation from now on. The returned list grows; its times are ms from now. */
function readTimes(world: Awaited<ReturnType<typeof openOutreach>>) {
  const from = world.time.now();
  const times: number[] = [];
  const { conversation } = world.network;
  world.network.conversation = (...asked) => {
    times.push(world.time.now() - from);
    return conversation(...asked);
  };
  return times;
}

test("a delivered message without an answer is found in the conversation, and counts as sent", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "delivered" });
  const { run, projector } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 0, in_doubt: 0 });
  expect(world.network.asked).toEqual(["10", "11"]);
  const sent = await world.events("DirectMessageSent");
  expect(sent.map(({ data }) => [data.recipient.id, data.settled_by])).toEqual([
    ["11", "answer"],
    ["10", "lookup"],
  ]);
  expect(projector.state("stats")).toEqual({ sent: 2, skipped: 0, failed: 0, contacted: 0 });
});

test("an undelivered message fails after two reads, keeps its quota, and is not repeated", async () => {
  await using world = await openOutreach("10", "11");
  const reads = readTimes(world);
  world.network.answers.push({ doubt: "lost" });
  const { run, projector } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1, in_doubt: 0 });
  expect(reads).toEqual([MINUTE_MS, 2 * MINUTE_MS]);
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { reason: "not_delivered", frees_quota: false, retry: false } },
  ]);
  expect(projector.state("quota").days.get("2026-03-01")).toBe(2);
  await run();
  expect(world.network.asked).toEqual(["10", "11"]);

  // Only an operator may allow another attempt.
  await world.append([{ type: "RecipientRetryAllowed", data: { recipient: { username: "user_10" } } }]);
  expect(await run()).toMatchObject({ sent: 1 });
});

test("the conversation is not read before the settle time, so a late message is found", async () => {
  await using world = await openOutreach("10", "11");
  const reads = readTimes(world);
  world.network.answers.push({ doubt: "delivered", lateMs: 55_000 });
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, failed: 0 });
  expect(reads).toEqual([MINUTE_MS]);
});

test("a message is found although the service's clock is hours ahead of the network's", async () => {
  await using world = await openOutreach("10", "11");
  const { conversation } = world.network;
  world.network.conversation = async (...asked) =>
    (await conversation(...asked)).map((dm) => ({ ...dm, createdAt: dm.createdAt - 600 * MINUTE_MS }));
  world.network.answers.push({ doubt: "delivered" });
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, failed: 0, in_doubt: 0 });
});

test("a clock that was set back does not delay the settling", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "lost" });
  let behind = 0;
  const { run } = await world.start({
    clock: () => world.time.now() - behind,
    network: {
      ...world.network,
      async sendDm(...asked) {
        const result = await world.network.sendDm(...asked);
        if (result.outcome === "in_doubt") behind = 24 * 60 * MINUTE_MS;
        return result;
      },
    },
  });
  const from = world.time.now();
  expect(await run()).toMatchObject({ sent: 1, failed: 1, in_doubt: 0 });
  expect(world.time.now() - from).toBeLessThan(5 * MINUTE_MS);
});

describe("a message stays in doubt", () => {
  test("if X no longer shows it", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "delivered" });
    const first = await world.start({ settleMs: 90 * 24 * 60 * MINUTE_MS, runMaxMs: 10 * MINUTE_MS });
    expect(await first.run()).toMatchObject({ in_doubt: 1 });
    world.time.jump(31 * 24 * 60 * MINUTE_MS);
    world.network.conversation = async () => [];
    expect(await (await world.start()).run()).toMatchObject({ failed: 0 });
    expect(await world.events("DirectMessageFailed")).toEqual([]);
  });

  test("if the recipient and the text were erased", async () => {
    await using world = await openOutreach();
    const recipient = { id: "erased:0badcafe0123", username: "erased:0badcafe0123" };
    const attempt = { attempt_id: "a1", run_id: "r1", recipient };
    await world.append([
      { type: "DirectMessageAttempted", data: { ...attempt, text: "erased", variant: "A", day: "2026-03-01" } },
      { type: "DirectMessageInDoubt", data: { ...attempt, detail: "erased" } },
    ]);
    const reads = readTimes(world);
    const { run, projector } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 0, failed: 0 });
    expect([reads, projector.state("run").open.size, projector.state("quota").days.get("2026-03-01")]).toEqual([
      [],
      1,
      1,
    ]);
  });

  test("if another account is linked", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "delivered" });
    const first = await world.start({ settleMs: 90 * 24 * 60 * MINUTE_MS, runMaxMs: 10 * MINUTE_MS });
    await first.run();
    const user = { id: "2", username: "others", name: "Others" };
    await world.append([
      { type: "AccountUnlinked", data: { user_id: "1", revoked: true } },
      { type: "AccountAuthorized", data: { user, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" } },
    ]);
    const second = await world.start();
    await second.run();
    expect(await world.events("DirectMessageFailed")).toEqual([]);
    expect(world.network.reads.filter((read) => read.startsWith("conversation 10"))).toEqual([]);
  });

  test("if the network changed its text", async () => {
    await using world = await openOutreach("10", "11");
    const { conversation } = world.network;
    world.network.conversation = async (...asked) =>
      (await conversation(...asked)).map((dm) => ({ ...dm, text: `${dm.text} (shortened)` }));
    world.network.answers.push({ doubt: "delivered" });
    expect(await (await world.start()).run()).toMatchObject({ sent: 1, failed: 0, in_doubt: 1 });
  });
});

test("the settle time starts at the request, not at the intent", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ waitMs: 10 * MINUTE_MS }, { doubt: "delivered", lateMs: 55_000 });
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, failed: 0, in_doubt: 0 });
});

test("a message is settled after the wait of a 429 on the conversation", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "delivered" });
  const retryAt = world.time.now() + 30 * MINUTE_MS;
  world.network.faults.push(undefined, new SocialError("rate_limited", "wait", { retryAt }));
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, in_doubt: 0 });
  expect(world.time.now()).toBeGreaterThanOrEqual(retryAt);
});

test("a message that appears between the two reads counts as sent", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "delivered", lateMs: 90_000 });
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, failed: 0 });
});

test("the two reads of a conversation are a settle time apart, also after a slow round", async () => {
  await using world = await openOutreach("10", "11");
  const { conversation } = world.network;
  const reads: [string, number][] = [];
  world.network.conversation = (token, id, limit) => {
    // Only the first two reads, one of each conversation, are slow.
    if (reads.length < 2) world.time.jump(12_000);
    reads.push([id, world.time.now()]);
    return conversation(token, id, limit);
  };
  world.network.answers.push({ doubt: "lost" }, { doubt: "lost" });
  const { run } = await world.start();
  await run();
  const apart = (id: string) => {
    const [first = 0, second = 0] = reads.filter(([who]) => who === id).map(([, at]) => at);
    return second - first;
  };
  expect(Math.min(apart("10"), apart("11"))).toBeGreaterThanOrEqual(MINUTE_MS);
});

describe("an unreadable conversation", () => {
  test("leaves the message in doubt and counted until the next run settles it", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "delivered" });
    const down = new SocialError("unavailable", "told so");
    world.network.faults.push(undefined, ...Array.from({ length: QUICK_ATTEMPTS_MAX }, () => down));
    const { run, projector } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 0, in_doubt: 1 });
    expect(projector.state("quota").days.get("2026-03-01")).toBe(2);
    expect(projector.state("run").open.size).toBe(1);

    world.network.people.set("12", person("12"));
    await world.list("12");
    await run();
    expect(projector.state("run").open.size).toBe(0);
    expect(projector.state("stats").sent).toBe(3);
    // The run settles the message in doubt to user 11 before it sends any message.
    const told = await world.events("DirectMessageSent");
    expect(told.map(({ data }) => data.recipient.id)).toEqual(["11", "10", "12"]);
  });

  test("leaves the message in doubt on the second read", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "lost" });
    world.network.faults.push(undefined, undefined, new SocialError("rate_limited", "wait"));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ in_doubt: 1, failed: 0 });
  });

  test("leaves the message open without a linked account", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ doubt: "delivered" });
    const { run, projector } = await world.start({
      network: {
        ...world.network,
        sendDm: async (token, id, text) => {
          await world.append([{ type: "AccountUnlinked", data: { user_id: OWN.id, revoked: true } }]);
          return world.network.sendDm(token, id, text);
        },
      },
    });
    await run();
    expect(projector.state("run").open.size).toBe(1);
  });
});

test("a message under many newer ones is still found", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "delivered" });
  const { conversation } = world.network;
  world.network.conversation = async (token, id, limit) => {
    const ours = await conversation(token, id, limit);
    const theirs = (number: number) => ({
      id: `r${number}`,
      senderId: id,
      text: "Who are you?",
      createdAt: world.time.now(),
    });
    return [...Array.from({ length: 12 }, (_, number) => theirs(number)), ...ours].slice(0, limit);
  };
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, failed: 0, in_doubt: 0 });
  expect(world.network.reads.slice(-2)).toEqual(["conversation 10 5", "conversation 10 25"]);
});

test("a stop does not wait for the settle time; the next start settles the message", async () => {
  await using world = await openOutreach("10", "11");
  world.network.answers.push({ doubt: "delivered" });
  const first = await world.start({
    network: {
      ...world.network,
      sendDm: (token, id, text) => {
        void first.runner[Symbol.asyncDispose]();
        return world.network.sendDm(token, id, text);
      },
    },
  });
  expect(await first.run()).toMatchObject({ reason: "stopped", in_doubt: 1 });
  const { runner, projector } = await world.start();
  await runner.recover({ steal: true });
  expect(projector.state("run").open.size).toBe(0);
  expect(await world.events("DirectMessageSent")).toMatchObject([{ data: { settled_by: "lookup" } }]);
});
