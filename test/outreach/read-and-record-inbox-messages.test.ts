// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { READ_ATTEMPTS_MAX } from "../../src/outreach/pacing-and-retries.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { createWishReader } from "../../src/outreach/detect-opt-out-replies.ts";
import { release } from "../../src/recipients/release-held-recipient.ts";
import { LOG_ENGINES, METADATA } from "../harness/in-process/temporary-log.ts";
import { person } from "../harness/in-process/social-network.ts";
import {
  openOutreach,
  openOutreachOn,
  RULES,
  type OutreachHarness,
} from "../harness/in-process/simulated-outreach-processes.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const MINUTE_MS = 60_000;

async function worldOf(...ids: readonly string[]): Promise<OutreachHarness> {
  const world = await openOutreach();
  for (const id of ids) world.network.people.set(id, person(id));
  return world;
}

const depsOf = ({ context }: Awaited<ReturnType<OutreachHarness["start"]>>) => {
  return { ...context, sleep: async () => {}, random: () => 0 };
};

const reached = ({ network }: OutreachHarness): string[] => network.accepted.map(({ recipientId }) => recipientId);

describe("a recipient who asks to stop", () => {
  test("is suppressed before the run judges any recipient, permanently, with the message's id", async () => {
    await using world = await worldOf("10", "11");
    await world.list("10", "11");
    const asked = world.network.receive("11", "STOP please");
    world.network.receive("11", "Stop!");
    world.time.jump(11 * MINUTE_MS);
    const { run } = await world.start();
    expect(await run()).toMatchObject({ sent: 1, skipped: 1 });
    expect(reached(world)).toEqual(["10"]);
    const [suppressed, ...more] = await world.events("RecipientSuppressed");
    expect(more).toEqual([]);
    expect(suppressed?.data).toEqual({
      recipient: { id: "11", username: "user_11" },
      reason: "opt_out",
      hashes: [...RULES.hashes({ id: "11", username: "user_11" })],
      message_id: asked,
    });
    // The log does not contain the words of the recipient's message.
    expect(JSON.stringify(await Array.fromAsync(world.store.read()))).not.toContain("STOP please");

    world.time.jump(40 * 86_400_000);
    expect(await run()).toMatchObject({ sent: 0 });
    expect(reached(world)).toEqual(["10"]);
    expect(await world.events("RecipientSuppressed")).toHaveLength(1);
  });

  test("is suppressed by a dry run, and shown as skipped", async () => {
    await using world = await worldOf("10");
    await world.list("10");
    world.network.receive("10", "unsubscribe");
    const { run } = await world.start();
    expect((await run({ dryRun: true })).preview).toMatchObject({
      would_send: [],
      would_skip: [{ reason: "suppressed" }],
    });
    expect(await world.events("RecipientSuppressed")).toHaveLength(1);
  });

  test("is found although the message appears behind newer ones that were read before", async () => {
    await using world = await worldOf("10", "11", "12");
    await world.list("10");
    const { run } = await world.start();
    await run();
    world.network.receive("11", "stop", 5 * MINUTE_MS);
    for (let message = 0; message < 3; message++) world.network.receive("12", "hello");
    await run();
    expect(await world.events("RecipientSuppressed")).toEqual([]);
    world.time.jump(6 * MINUTE_MS);
    await world.list("11");
    expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
    expect(reached(world)).toEqual(["10"]);
  });

  test("is suppressed by the next run after an outage between two pages", async () => {
    await using world = await worldOf("10", "11", "12", "13");
    await world.list("10");
    expect(await (await world.start()).run()).toMatchObject({ sent: 1 });
    world.time.jump(60 * MINUTE_MS);
    // The opt-out is the oldest message, so it is on the last page.
    world.network.receive("11", "stop");
    for (const id of ["12", "13", "12", "13"]) world.network.receive(id, "hi");
    world.time.jump(60 * MINUTE_MS);
    const down = new SocialError("unavailable", "told so");
    world.network.inboxFaults.push(undefined, ...Array.from({ length: READ_ATTEMPTS_MAX }, () => down));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "network_unavailable" });
    await world.list("11");
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { recipient: { id: "11" } } }]);
  });

  test("stays suppressed by hashes alone", async () => {
    await using world = await worldOf("10");
    const hashes = [...RULES.hashes({ id: "10" })];
    await world.append([{ type: "RecipientSuppressed", data: { recipient: {}, reason: "opt_out", hashes } }]);
    await world.list("10");
    const { run, projector } = await world.start();
    expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
    expect(projector.state("contacts").people.size).toBe(1);
  });
});

describe.each(LOG_ENGINES)("a reply with an ambiguous stop word, in a log %s", (engine) => {
  const TALK = "Can we talk at the end of the week?";

  async function heldWorld() {
    const world = await openOutreachOn(engine, "10", "11");
    const message_id = world.network.receive("10", TALK);
    const readWish = createWishReader(["stop", "end"]);
    return { world, message_id, settings: { readWish } };
  }

  test("holds its sender, who gets no message until an operator releases them", async () => {
    const { world, message_id, settings } = await heldWorld();
    await using _world = world;
    const instance = await world.start(settings);
    expect(await instance.run()).toMatchObject({ reason: "completed", sent: 1, skipped: 0 });
    expect(await instance.run()).toMatchObject({ sent: 0 });
    expect(reached(world)).toEqual(["11"]);
    expect(await world.events("RecipientSuppressed")).toEqual([]);
    expect(await world.events("RecipientHeld")).toMatchObject([
      { data: { recipient: { id: "10", username: "user_10" }, message_id } },
    ]);
    expect(JSON.stringify(await Array.fromAsync(world.store.read()))).not.toContain(TALK);
    expect(instance.projector.state("contacts").held).toBe(1);

    await release(depsOf(instance), "10", METADATA);
    expect(instance.projector.state("contacts").held).toBe(0);
    // The run reads the message a second time, because each run re-reads the last minutes, but it does not hold the
    // recipient a second time.
    expect(await instance.run()).toMatchObject({ sent: 1 });
    expect(await world.events("RecipientHeld")).toHaveLength(1);
  });

  test("excludes its sender from a dry run, and a later one holds them again", async () => {
    const { world, settings } = await heldWorld();
    await using _world = world;
    const instance = await world.start(settings);
    expect((await instance.run({ dryRun: true })).preview).toMatchObject({
      would_send: [{ recipient: { id: "11" } }],
      would_skip: [],
    });
    await release(depsOf(instance), "10", METADATA);
    world.time.jump(MINUTE_MS);
    world.network.receive("10", "don't stop");
    expect((await instance.run({ dryRun: true })).preview?.would_send).toHaveLength(1);
    expect(await world.events("RecipientHeld")).toHaveLength(2);
  });

  test("holds its sender until a clear stop suppresses them", async () => {
    const { world, settings } = await heldWorld();
    await using _world = world;
    const instance = await world.start(settings);
    await instance.run({ dryRun: true });
    world.time.jump(MINUTE_MS);
    world.network.receive("10", "STOP");
    expect(await instance.run()).toMatchObject({ sent: 1, skipped: 1 });
    expect(instance.projector.state("contacts").held).toBe(0);
    expect(await release(depsOf(instance), "10", METADATA)).toBe("suppressed");
    expect(await release(depsOf(instance), "12", METADATA)).toBe("unknown_recipient");
    expect(await release(depsOf(instance), "11", METADATA)).toBeUndefined();
    expect(await world.events("RecipientReleased")).toEqual([]);
  });
});

describe("an unreadable inbox", () => {
  test("keeps the run from sending any message", async () => {
    await using world = await worldOf("10");
    await world.list("10");
    world.network.inboxFaults.push(new SocialError("stopped", "told so", { stop: "missing_scope" }));
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason: "missing_scope", sent: 0 });
    expect(announced).toEqual(["outreach stopped: missing_scope"]);
    expect(world.network.asked).toEqual([]);
  });

  test("is read after the wait of a 429", async () => {
    await using world = await worldOf("10");
    await world.list("10");
    const retryAt = world.time.now() + 15 * MINUTE_MS;
    world.network.inboxFaults.push(new SocialError("rate_limited", "wait", { retryAt }));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(world.network.accepted[0]?.createdAt).toBeGreaterThanOrEqual(retryAt);
  });
});

describe("a recipient who wrote first", () => {
  const inbound = { sources: [openSource("inbound")] };

  test("has the basis dm_first despite an import, and is found by the source inbound", async () => {
    await using world = await worldOf("10", "11", "12");
    const message_id = world.network.receive("11", "Do you have a guide?");
    world.network.receive("11", "Hello?");
    const { run, projector } = await world.start(inbound);
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, skipped: 0 });
    expect(reached(world)).toEqual(["11"]);
    expect((await world.events("DirectMessageReceived")).map(({ data }) => data)).toEqual([
      { recipient: { id: "11", username: "user_11" }, message_id, received_at: "2026-03-01T08:00:00.000Z" },
    ]);
    await world.append([addedOf({ id: "11" }, { basis: "none" })]);
    await projector.until((await world.store.head()).position);
    expect(projector.state("contacts").people.get("11")).toMatchObject({ basis: "dm_first", inbound: true });
  });

  test("is not the sender of a group message, in which an opt-out still counts", async () => {
    await using world = await worldOf("10", "11");
    world.network.receive("10", "lunch?");
    world.network.receive("11", "Stop, please");
    const { inbox } = world.network;
    const { run } = await world.start({
      ...inbound,
      network: {
        ...world.network,
        async inbox(...asked) {
          const page = await inbox(...asked);
          return { ...page, messages: page.messages.map((message) => ({ ...message, inGroup: true as const })) };
        },
      },
    });
    expect(await run()).toMatchObject({ sent: 0 });
    expect(await world.events("DirectMessageReceived")).toEqual([]);
    expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { recipient: { id: "11" } } }]);
  });

  test("is not the sender of a reply, which is recorded once", async () => {
    await using world = await worldOf("10");
    await world.list("10");
    const { run, projector } = await world.start();
    await run();
    world.time.jump(MINUTE_MS);
    world.network.receive("10", "Thanks!");
    world.network.receive("10", "Really");
    world.time.jump(20 * MINUTE_MS);
    await run();
    await run();
    expect(await world.events("DirectMessageReceived")).toHaveLength(1);
    const contact = projector.state("contacts").people.get("10");
    expect(contact).toMatchObject({ inbound: false, replied: true, basis: "opt_in", status: "sent" });
  });

  test("counts as such also after a message that certainly was not sent", async () => {
    await using world = await worldOf("10");
    await world.append([addedOf({ id: "10" })]);
    world.network.answers.push({ stop: "credits_depleted" });
    const { run, projector } = await world.start();
    expect(await run()).toMatchObject({ failed: 1 });
    world.time.jump(MINUTE_MS);
    world.network.receive("10", "hello");
    await run();
    expect(projector.state("contacts").people.get("10")).toMatchObject({ inbound: true, replied: false });
  });

  test("is read from older inbox pages only while the quota lasts", async () => {
    const ids = ["10", "11", "12", "13", "14", "15"];
    await using world = await worldOf(...ids);
    for (const id of ids) {
      world.network.receive(id, "hello");
      world.time.jump(30 * MINUTE_MS);
    }
    const { run } = await world.start({ ...inbound, rules: { ...RULES, dailyLimit: 3 } });
    expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 3 });
    // A page holds two messages. The first run reads the newest page, and one older page for its third message.
    expect(world.network.inboxReads).toHaveLength(2);
    world.time.jump(86_400_000);
    expect(await run()).toMatchObject({ sent: 3 });
    expect(new Set(reached(world))).toEqual(new Set(ids));
    world.time.jump(86_400_000);
    const before = world.network.inboxReads.length;
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    // The inbox now holds twelve messages, two a page. The run reads only our three newest and those up to ten minutes
    // older than the newest of the day before, so it does not need all six pages.
    expect(world.network.inboxReads.length - before).toBeLessThanOrEqual(4);
  });

  test("is found although the network rejects the cursor of older pages", async () => {
    const ids = ["10", "11", "12", "13"];
    await using world = await worldOf(...ids);
    for (const id of ids) {
      world.network.receive(id, "hello");
      world.time.jump(30 * MINUTE_MS);
    }
    world.network.inboxFaults.push(undefined, new SocialError("rejected", "told so"));
    const { run } = await world.start(inbound);
    expect(await run()).toMatchObject({ reason: "completed", sent: 4, skipped: 0 });
  });
});

test("a network that rejects all its cursors is asked for a bounded number of older pages", async () => {
  const ids = ["10", "11", "12", "13", "14"];
  await using world = await worldOf(...ids);
  for (const id of ids) {
    world.network.receive(id, "hello");
    world.time.jump(30 * MINUTE_MS);
  }
  const refused = new SocialError("rejected", "told so");
  for (let round = 0; round < 50; round++) world.network.inboxFaults.push(undefined, refused);
  const { run } = await world.start({ sources: [openSource("inbound")] });
  expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
  // Twice, the run reads the newest page and asks for one older page, which the network rejects. It then stops, because
  // each page costs money.
  expect(world.network.inboxReads).toHaveLength(4);
  world.network.inboxFaults.length = 0;
  await run();
  expect((await world.events("InboxRead")).at(-1)?.data).not.toHaveProperty("backlog");
});

test("an inbox page is judged again after a concurrent suppression by an operator", async () => {
  await using world = await worldOf("10", "11");
  await world.list("10");
  world.network.receive("10", "stop");
  const { context, projector } = await world.start();
  const { eventLog } = context;
  const hashes = [...RULES.hashes({ id: "10", username: "user_10" })];
  let other: (() => Promise<void>) | undefined = () =>
    world.append([{ type: "RecipientSuppressed", data: { recipient: { id: "10" }, reason: "by_hand", hashes } }]);
  const raced: typeof eventLog = {
    ...eventLog,
    async append(stream, newEvents, metadata, options) {
      if (newEvents[0]?.type === "DirectMessageReceived") {
        await other?.();
        other = undefined;
      }
      return eventLog.append(stream, newEvents, metadata, options);
    },
  };
  const { run } = await world.start({ eventLog: raced });
  expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
  await projector.until((await world.store.head()).position);
  // The log has only the suppression by hand, although the inbox contained a stop too. The received message is recorded
  // nevertheless.
  expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { reason: "by_hand" } }]);
  expect(await world.events("DirectMessageReceived")).toHaveLength(1);
});

test("a late stop behind the messages of the first read is found by the next run", async () => {
  await using world = await worldOf("10", "11", "12");
  world.network.receive("11", "stop", MINUTE_MS);
  world.network.receive("12", "hello");
  const { run } = await world.start();
  await run({ dryRun: true });
  world.time.jump(2 * MINUTE_MS);
  for (let message = 0; message < 3; message++) world.network.receive("12", "hello again");
  await world.list("11");
  expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
});

test("a late stop is found although the service's clock is far ahead of the network's", async () => {
  await using world = await worldOf("10", "11", "12");
  const { run } = await world.start({ clock: () => world.time.now() + 10 * 60 * MINUTE_MS });
  await run();
  world.network.receive("11", "stop", 5 * MINUTE_MS);
  for (let message = 0; message < 3; message++) world.network.receive("12", "hello");
  await run();
  world.time.jump(6 * MINUTE_MS);
  await world.list("11");
  expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
});

test("an inbox that counts as unread is read back to the log's first message", async () => {
  await using world = await worldOf("10", "11", "12", "13", "14", "15");
  await world.list("10");
  const { run } = await world.start();
  await run();
  world.time.jump(2 * 60 * MINUTE_MS);
  world.network.receive("10", "please stop");
  for (const id of ["11", "12", "13", "14", "15"]) world.network.receive(id, "hello");
  // After the account was unlinked and authorized again, the inbox counts as never read.
  const user = { id: "1", username: "we", name: "We" };
  await world.append([
    { type: "AccountUnlinked", data: { user_id: "1", revoked: true } },
    { type: "AccountAuthorized", data: { user, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" } },
  ]);
  await run();
  expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { recipient: { id: "10" } } }]);
  expect(await world.events("DirectMessageReceived")).toHaveLength(6);
});

test("an inbox is read again only down to the known messages", async () => {
  await using world = await worldOf("10", "11");
  for (let message = 0; message < 9; message++) {
    world.network.receive("10", "hello");
    world.time.jump(30 * MINUTE_MS);
  }
  const { run } = await world.start();
  await run();
  const first = world.network.inboxReads.length;
  expect(first).toBe(1);
  await run();
  expect(world.network.inboxReads.length).toBe(first + 1);
});

test("a recipient with an allowed retry gets one more message, although no source lists them", async () => {
  await using world = await worldOf("10");
  world.network.receive("10", "hello");
  world.network.answers.push("recipient_closed");
  const { run } = await world.start({ sources: [openSource("again"), openSource("inbound"), openSource("last")] });
  expect(await run()).toMatchObject({ sent: 0, failed: 1 });
  expect(await run()).toMatchObject({ sent: 0, failed: 0 });
  const retry = { type: "RecipientRetryAllowed", data: { recipient: { id: "10" } } } as const;
  await world.append([retry, retry]);
  expect(await run()).toMatchObject({ sent: 1 });
  await world.append([retry]);
  expect(await run()).toMatchObject({ sent: 0 });
});
