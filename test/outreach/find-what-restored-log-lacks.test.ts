// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Recipient } from "../../events/outreach.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { SocialError } from "../../src/networks/network.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";

const RESTORED: NewEvent = {
  type: "LogRestored",
  data: { cause: "restore", epoch: "e", found_position: 1, found_hash: "" },
};
const DAY_MS = 86_400_000;

const LOSS: NewEvent = { type: "LogLossAccepted", data: { reason: "lost_tail", found_position: 5, found_hash: "" } };

test.each([RESTORED, LOSS])(
  "on the day of $type a run sends nothing, and is announced as stopped",
  async (newEvent) => {
    await using world = await openOutreach("10");
    await world.append([newEvent]);
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason: "log_restored", sent: 0 });
    expect(announced).toEqual(["outreach stopped: log_restored"]);
    world.time.jump(DAY_MS);
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  },
);

test("another time zone does not shorten the 24 hours without messages after a restore", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11"]) world.network.people.set(id, person(id));
  await world.list("10");
  const before = await world.start();
  expect(await before.run()).toMatchObject({ sent: 1 });
  await world.list("11");
  await world.append([RESTORED]);
  // In this zone, the next day of the daily quota begins soon after the restore or has already begun. The run must
  // nevertheless wait for 24 hours after the restore.
  const { run } = await world.start({ timezone: "Pacific/Kiritimati" });
  world.time.jump(DAY_MS / 2);
  expect(await run()).toMatchObject({ reason: "log_restored", sent: 0 });
  world.time.jump(DAY_MS / 2);
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
});

test("a recipient with a message that the restored log lacks gets no second one", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
  // This message is sent after the backup, so the restored log does not contain it.
  await world.network.sendDm("token", "11", "Hi Name 11");
  world.network.receive("12", "hello");
  await world.list("10", "11", "12");
  await world.append([RESTORED]);
  world.time.jump(DAY_MS);
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, skipped: 1 });
  expect(await world.events("DirectMessageSkipped")).toMatchObject([
    { data: { recipient: { id: "11" }, reason: "already_contacted" } },
  ]);
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["11", "10", "12"]);
});

test("a message behind many replies is found, and an unreadable conversation gets no message", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
  await world.network.sendDm("token", "11", "Hi Name 11");
  for (let answer = 0; answer < 7; answer++) world.network.receive("11", "hello");
  await world.list("10", "11", "12");
  await world.append([RESTORED]);
  world.time.jump(DAY_MS);
  const { conversation } = world.network;
  world.network.conversation = (token, id, limit) =>
    id === "10" ? Promise.reject(new SocialError("rejected", "told so")) : conversation(token, id, limit);
  const { run } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["11", "12"]);
});

test("an allowed retry sends no second message if the restored log lacks the first", async () => {
  await using world = await openOutreach("10");
  const { run } = await world.start();
  world.network.answers.push({ doubt: "lost" });
  expect(await run()).toMatchObject({ sent: 0, failed: 1 });
  await world.append([{ type: "RecipientRetryAllowed", data: { recipient: { id: "10" } } }]);
  // Sent after the backup.
  await world.network.sendDm("token", "10", "Hi Name 10");
  await world.append([RESTORED]);
  world.time.jump(DAY_MS);
  expect(await run()).toMatchObject({ reason: "completed", sent: 0, skipped: 1 });
  world.time.jump(DAY_MS);
  expect(await run()).toMatchObject({ reason: "completed", sent: 0, skipped: 0 });
  expect(world.network.accepted).toHaveLength(1);
});

test("a recipient found to have a message counts as contacted forever", async () => {
  await using world = await openOutreach();
  world.network.people.set("10", person("10"));
  await world.network.sendDm("token", "10", "Hi Name 10");
  await world.list("10");
  await world.append([RESTORED]);
  const { run } = await world.start();
  world.time.jump(DAY_MS);
  expect(await run()).toMatchObject({ sent: 0, skipped: 1 });
  expect(await world.events("DirectMessageSkipped")).toMatchObject([
    { data: { reason: "already_contacted", found: { message_id: world.network.accepted[0]?.id } } },
  ]);
  // 32 days later, the network no longer shows the message that the run found before.
  world.time.jump(32 * DAY_MS);
  expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
  expect(world.network.accepted).toHaveLength(1);
});

test("a found message closes a recipient who already has a recorded skip", async () => {
  await using world = await openOutreach("10");
  const { run } = await world.start();
  world.network.answers.push({ doubt: "lost" });
  await run();
  const skipped = { run_id: "earlier", recipient: { id: "10" }, reason: "already_contacted" } as const;
  await world.append([
    { type: "DirectMessageSkipped", data: skipped },
    { type: "RecipientRetryAllowed", data: { recipient: { id: "10" } } },
  ]);
  await world.network.sendDm("token", "10", "Hi Name 10");
  await world.append([RESTORED]);
  for (const days of [1, 32]) {
    world.time.jump(days * DAY_MS);
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
  }
});

test("an opt-out behind newer messages is found in a restored log that never read the inbox", async () => {
  await using world = await openOutreach();
  world.network.pageMax = 10;
  for (const id of ["10", "11"]) world.network.people.set(id, person(id));
  await world.network.sendDm("token", "10", "Hi Name 10");
  world.network.receive("10", "stop");
  for (let other = 0; other < 12; other++) world.network.receive("11", "hello");
  await world.append([RESTORED]);
  const { run } = await world.start();
  world.time.jump(DAY_MS);
  await run();
  expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { recipient: { id: "10" } } }]);
});

test("a recipient who opted out on their page after the backup gets no message, which the next run records once", async () => {
  await using world = await openOutreach("10", "11");
  // The key file was not restored with the log, so it still contains the opt-out of recipient 10.
  const keptOptOuts = async () => RULES.hashes({ id: "10" });
  const { run } = await world.start({ keptOptOuts });
  expect((await run({ dryRun: true })).preview?.would_skip).toMatchObject([{ reason: "suppressed" }]);
  expect(await run()).toMatchObject({ sent: 1 });
  await run();
  expect(world.network.asked).toEqual(["11"]);
  const hashes = [...RULES.hashes({ id: "10" })];
  expect((await world.events("RecipientSuppressed")).map(({ data }) => data)).toEqual([
    { reason: "opt_out_page", hashes },
    { reason: "hash", recipient: { id: "10" }, hashes },
  ]);
});

test("a follower who was forgotten after the backup gets no message", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11"]) world.network.people.set(id, person(id));
  // The key file was not restored with the log, so it still says that recipient 10 was forgotten.
  const isForgotten = ({ id }: Recipient): boolean => id === "10";
  const rules = { ...RULES, requireConsent: false, isForgotten };
  const { run } = await world.start({ rules, sources: [openSource("followers")] });
  expect(await run()).toMatchObject({ sent: 1 });
  expect(world.network.asked).toEqual(["11"]);
});

test("a dry run of a restored log lists no recipient that a run would pass over", async () => {
  await using world = await openOutreach();
  for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
  await world.network.sendDm("token", "11", "Hi Name 11");
  await world.list("10", "11", "12");
  await world.append([RESTORED]);
  world.time.jump(DAY_MS);
  const { conversation } = world.network;
  world.network.conversation = (token, id, limit) =>
    id === "10" ? Promise.reject(new SocialError("rejected", "told so")) : conversation(token, id, limit);
  const { run } = await world.start();
  const { preview } = await run({ dryRun: true });
  expect(preview?.would_send.map(({ recipient }) => recipient.id)).toEqual(["12"]);
  expect(preview?.would_skip).toMatchObject([{ recipient: { id: "11" }, reason: "already_contacted" }]);
});

test("without a restore no conversation is read before a message", async () => {
  await using world = await openOutreach("10");
  const { run } = await world.start({ rules: RULES });
  await run();
  expect(world.network.reads.filter((read) => read.startsWith("conversation"))).toEqual([]);
});

test("a message sent right before a restore is found, also if it appears after midnight", async () => {
  await using world = await openOutreach();
  const { run } = await world.start();
  world.network.people.set("9", person("9"));
  await world.list("9");
  await run();
  world.network.people.set("10", person("10"));
  await world.list("10");
  world.time.jump(Date.parse("2026-03-01T23:59:50.000Z") - world.time.now());
  world.network.answers.push({ doubt: "delivered", lateMs: 50_000 });
  await world.network.sendDm("token", "10", "Hi Name 10");
  await world.append([RESTORED]);
  world.time.jump(15_000);
  expect(await run()).toMatchObject({ reason: "log_restored", sent: 0 });
  world.time.jump(60_000);
  await run();
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["9", "10"]);
});

test("a restore of a log without a time zone blocks messages for 24 hours", async () => {
  await using world = await openOutreach("10");
  world.time.jump(DAY_MS / 2);
  await world.append([RESTORED]);
  world.time.jump(DAY_MS / 2);
  const { run } = await world.start();
  expect(await run()).toMatchObject({ reason: "log_restored", sent: 0 });
  world.time.jump(DAY_MS / 2);
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
});
