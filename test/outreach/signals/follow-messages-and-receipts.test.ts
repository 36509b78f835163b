// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { EventType, Recorded } from "../../../events/event-types-and-codec.ts";
import { createResults } from "../../../src/history/results.ts";
import { release } from "../../../src/recipients/release-held-recipient.ts";
import { startSandbox, type Sandbox } from "../../../sandbox/sandbox.ts";
import { signalChat, signalRead } from "../../../sandbox/x/activity-subscriptions-and-stream.ts";
import { METADATA } from "../../harness/in-process/temporary-log.ts";
import { personId } from "../../sandbox/call-simulated-x.ts";
import { eventually, openSignals } from "./signal-harness.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox({ x: { dmLimit: 1_000, dmReadLimit: 1_000, keepAliveMs: 50 } });
});
afterEach(() => sandbox[Symbol.asyncDispose]());

/**
 * Opens a test harness with one instance that follows X's stream of signals. The instance has already read the inbox
 * once, for messages from before the stream was open.
 */
async function openFollowed(...handles: readonly string[]) {
  const world = await openSignals(sandbox, ...handles);
  const followed = await world.follow();
  await eventually(async () => (await world.events("InboxRead")).length > 0);
  return { ...followed, ...world };
}

/** Counts events of a type, after the projections have folded all events of the log. */
async function countOf({ events, store, context }: Awaited<ReturnType<typeof openFollowed>>, type: EventType) {
  await context.projector.until((await store.head()).position);
  return (await events(type)).length;
}

test("a stop word in the middle of a run suppresses its sender before their turn, once", async () => {
  await using world = await openFollowed("ada_builds", "grace_codes", "linus_k");
  const { context, run } = world;
  const { sendDm } = context.network;
  sandbox.faults.add({ network: "x", kind: "stream_repeat" });
  context.network.sendDm = async (...asked) => {
    const sent = await sendDm(...asked);
    if (sandbox.x.accepted.size === 1) {
      world.write("linus_k", "STOP");
      await eventually(async () => (await countOf(world, "RecipientSuppressed")) > 0);
    }
    return sent;
  };
  expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
  expect(sandbox.x.accepted.has(personId(sandbox, "linus_k"))).toBe(false);
  // This run reads the message in the inbox too, and must not record the opt-out a second time.
  await run();
  const suppressed = await world.events("RecipientSuppressed");
  expect(suppressed.map(({ data }) => [data.reason, data.via])).toEqual([["opt_out", "stream"]]);
  const charged = [{ data: { messages: 1, chats: 0, usage: { messages: 1, usd: 0.01 } } }];
  expect(await world.events("SignalsReceived")).toMatchObject(charged);
  expect(JSON.stringify(await Array.fromAsync(world.store.read()))).not.toContain("STOP");
  const found = { by_stream: { messages: 1, opt_outs: 1 }, by_reading: { messages: 0, opt_outs: 0 } };
  expect(context.projector.state("signals")).toMatchObject({ open: true, ...found });
});

test.each(["stream_drop", "stream_cut", "stream_disconnect"] as const)(
  "a message that %s keeps from the stream is found by reading",
  async (kind) => {
    await using world = await openFollowed("ada_builds");
    sandbox.faults.add({ network: "x", kind, count: 1 });
    world.write("ada_builds", "stop");
    world.write("grace_codes", "hello");
    // This fault loses the signal without closing the stream, so only a run that reads the inbox finds the message.
    if (kind === "stream_drop") await world.run();
    await eventually(async () => (await countOf(world, "RecipientSuppressed")) > 0);
    const [{ data }] = (await world.events("RecipientSuppressed")) as [Recorded<"RecipientSuppressed">];
    expect(data).toMatchObject({ reason: "opt_out", recipient: { username: "ada_builds" } });
    expect(data).not.toHaveProperty("via");
    await eventually(async () => (await countOf(world, "DirectMessageReceived")) > 1);
    expect(world.context.projector.state("signals").by_reading.opt_outs).toBe(1);
    // The service also reads the inbox outside of runs, each time the network's stream of signals may have missed a
    // message. Each such reading is recorded with its cost.
    const reads = (await world.events("InboxRead")).filter(({ data: { run_id } }) => run_id === undefined);
    expect(reads.every(({ data: { usage } }) => usage !== undefined)).toBe(true);
  },
);

test("a sender who writes first gets a message, and signals in the wrong order double nothing", async () => {
  await using world = await openFollowed();
  sandbox.faults.add({ network: "x", kind: "stream_reorder" });
  for (const text of ["hello", "are you there?", "unsubscribe", "hello again"]) world.write("mina_designs", text);
  await eventually(async () => (await countOf(world, "SignalsReceived")) === 4);
  expect(await world.events("DirectMessageReceived")).toMatchObject([{ data: { via: "stream" } }]);
  expect(await countOf(world, "RecipientSuppressed")).toBe(1);
  const [contact] = world.context.projector.state("contacts").people.values();
  expect(contact).toMatchObject({ basis: "dm_first", inbound: true, suppressed: true });
});

test("receipts raise a mark of what a recipient has seen, in both forms", async () => {
  await using world = await openFollowed("ada_builds", "grace_codes", "linus_k");
  const { context, run } = world;
  const read = (handle: string, last?: string) => signalRead(sandbox.x, personId(sandbox, handle), world.own.id, last);
  // A recipient's read receipt from before our message must not count as a receipt for it.
  read("ada_builds");
  expect(await run()).toMatchObject({ sent: 3 });
  const [first, second] = sandbox.x.messages.kept.map(({ id }) => id);
  read("grace_codes", first);
  read("linus_k");
  read("linus_k");
  read("yuki_dev");
  world.write("yuki_dev", "hello");
  await eventually(async () => (await countOf(world, "SignalsReceived")) === 1);
  const seen = await world.events("DirectMessagesSeen");
  expect(seen.map(({ data }) => data.recipient.username)).toEqual(["linus_k"]);
  read("grace_codes", second);
  await eventually(async () => (await countOf(world, "DirectMessagesSeen")) === 2);
  const { state } = context.projector;
  const states = {
    conversions: state("conversions"),
    results: state("results"),
    runs: state("runs"),
    visits: state("visits"),
  };
  const { total } = await createResults(states, "variant", { from: undefined, to: undefined });
  expect(total.figures).toMatchObject({ sent: 3, seen: 2, seen_rate: { rate: 2 / 3 } });
});

test("a message in X Chat holds its sender until an operator decides, once for each message", async () => {
  await using world = await openFollowed("ada_builds", "grace_codes");
  const { context, run } = world;
  sandbox.faults.add({ network: "x", kind: "stream_repeat" });
  signalChat(sandbox.x, personId(sandbox, "grace_codes"), world.own.id);
  await eventually(async () => (await countOf(world, "RecipientHeld")) > 0);
  expect(await run()).toMatchObject({ sent: 1 });
  expect(await world.events("RecipientHeld")).toMatchObject([{ data: { reason: "x_chat", via: "stream" } }]);
  expect(await world.events("SignalsReceived")).toMatchObject([{ data: { messages: 1, chats: 1 } }]);
  expect(await release(context, personId(sandbox, "grace_codes"), METADATA)).toBeUndefined();
  expect(await run()).toMatchObject({ sent: 1 });
});

test("a second instance follows the stream once the first is dead, and closes the gap", async () => {
  await using world = await openFollowed("ada_builds");
  const next = await world.follow();
  expect(next.role.isHeld).toBe(false);
  world.die();
  for (const connection of sandbox.x.activity.connections) connection.end("cut");
  world.write("ada_builds", "stop");
  await eventually(() => next.role.isHeld);
  await eventually(async () => (await countOf(world, "RecipientSuppressed")) > 0);
  expect(await countOf(world, "SignalStreamChanged")).toBe(1);
});

test("a stream that X refuses is recorded as not open, and opened again after a minute", async () => {
  for (let one = 0; one < 2; one++) sandbox.x.activity.connections.add({ write() {}, end() {} });
  await using world = await openSignals(sandbox, "ada_builds");
  await world.follow();
  const changes = () => world.events("SignalStreamChanged");
  await eventually(async () => (await changes()).length > 0);
  sandbox.x.activity.connections.clear();
  await eventually(async () => (await changes()).length > 1);
  const [refused, opened] = (await changes()) as [Recorded<"SignalStreamChanged">, Recorded<"SignalStreamChanged">];
  expect([refused.data, opened.data]).toEqual([
    { open: false, details: ["X asks to wait"] },
    { open: true, details: [] },
  ]);
  expect(Date.parse(opened.time) - Date.parse(refused.time)).toBeGreaterThanOrEqual(60_000);
});
