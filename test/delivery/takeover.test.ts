// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { EventLog } from "../../src/log/event-log.ts";
import type { Channel } from "../../src/networks/network.ts";
import { DELIVERED, fakeChannel, gate, UNAVAILABLE, type FakeChannel } from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery, passUntil, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { fakeTime, type FakeTime } from "../harness/in-process/fake-time.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { createReach } from "../harness/in-process/interrupt-log-access.ts";

/**
 * Time in ms until another instance takes over from one that hangs: its lease must expire, and the other instance must
 * ask for it.
 */
const TAKEN_OVER_MS = 17_000;

interface Pair extends AsyncDisposable {
  readonly time: FakeTime;
  /** Lets time pass for all instances. */
  pass(ms: number): Promise<void>;
  start(
    instance: string,
    channels: readonly Channel[],
    wrap?: (eventLog: EventLog) => EventLog,
  ): Promise<DeliveryHarness>;
}

/** Opens instances on one log and one clock, each with a separate store and timers. */
function openPair(): Pair {
  const stack = new AsyncDisposableStack();
  const file = newLogFile();
  const time = fakeTime();
  const houses: DeliveryHarness[] = [];
  return {
    time,
    pass: (ms) => passUntil(time.clock() + ms, time, houses),
    async start(instance, channels, wrap) {
      const options = { file, time, instance, channels, ...(wrap === undefined ? {} : { wrap }) };
      const house = stack.use(await openDelivery(options));
      houses.push(house);
      return house;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const knowing = (name: ChannelName, answer?: Parameters<typeof fakeChannel>[1]): FakeChannel => {
  const channel = fakeChannel(name, answer);
  const send: NonNullable<Channel["batch"]>["send"] = (clicks, options) =>
    Promise.all(clicks.map((click) => channel.send(click, options)));
  return { ...channel, recognisesMs: 3_600_000, batch: { max: 1, send } };
};

test("a second instance continues where the first stopped", async () => {
  await using pair = openPair();
  const [first, second] = [fakeChannel("chat"), fakeChannel("chat")];
  const one = await pair.start("one", [first]);
  const two = await pair.start("two", [second]);
  await one.clicks(3);
  await one.settled();
  await one.dispatchers[Symbol.asyncDispose]();
  await two.clicks(2);
  await pair.pass(1_000);
  await two.settled();
  expect([first.sent.length, second.sent.length]).toEqual([3, 2]);
});

test("a new dispatcher reads all earlier outcomes before it sends", async () => {
  await using pair = openPair();
  const [first, second] = [fakeChannel("chat"), fakeChannel("chat")];
  const one = await pair.start("one", [first]);
  await pair.start("two", [second]);
  await one.clicks(3);
  await one.settled();
  await one.dispatchers[Symbol.asyncDispose]();
  // The second instance asks for the lease at once, before it has read the outcomes that the first one appended.
  pair.time.ring();
  await pair.pass(TAKEN_OVER_MS);
  expect([first.sent.length, second.sent.length]).toEqual([3, 0]);
});

test.each([
  ["is in doubt if the network does not deduplicate", fakeChannel, 0],
  ["is sent again if the network deduplicates", knowing, 1],
] as const)("a dispatch in flight at a frozen instance %s", async (_what, channelOf, again) => {
  await using pair = openPair();
  const stuck = gate();
  const still = createReach();
  const [first, second] = [channelOf("chat", () => stuck.answer), channelOf("chat")];
  const one = await pair.start("one", [first], still.wrap);
  const two = await pair.start("two", [second]);
  await one.clicks(2);
  await first.until(1);
  still.standStill();
  await pair.pass(TAKEN_OVER_MS);
  await two.settled();
  expect(second.sent.map(({ id }) => id).filter((id) => id === first.sent[0]?.id)).toHaveLength(again);
  expect(await two.outcomes("DispatchInDoubt")).toHaveLength(1 - again);

  // The frozen instance runs on, but has lost its lease. From now on it may neither send nor record anything.
  stuck.open();
  still.goOn();
  await pair.pass(TAKEN_OVER_MS);
  expect(first.sent).toHaveLength(1);
  expect((await two.outcomes("DispatchInDoubt", "DispatchSucceeded")).map(({ data }) => data.source)).toEqual([1, 2]);
  expect(one.faults).toContain("a dispatch could not be recorded");
});

test("an instance frozen before a request does not make it", async () => {
  await using pair = openPair();
  const still = createReach();
  const [first, second] = [knowing("ads"), knowing("ads")];
  const one = await pair.start("one", [first], still.wrap);
  // The frozen instance cannot reach the log. Its timers still fire, but its renewals of the lease have no effect.
  still.standStill();
  await pair.pass(10_001);
  await one.append({ type: "ChannelTestRequested", data: { channels: ["ads"] } });
  await pair.pass(1_000);
  expect(first.sent).toEqual([]);
  await pair.start("two", [second]);
  await pair.pass(TAKEN_OVER_MS);
  still.goOn();
  await pair.pass(TAKEN_OVER_MS);
  expect([first.sent.length, second.sent.length]).toEqual([0, 1]);
});

test("a single instance keeps its outcomes while the log is unreachable longer than a lease", async () => {
  await using pair = openPair();
  const still = createReach();
  const chat = fakeChannel("chat");
  const asked = gate();
  const slow = fakeChannel("messaging", () => asked.answer);
  const one = await pair.start("one", [chat, slow], still.wrap);
  await one.append({ type: "MessageRequested", data: { text: "hello" } });
  await slow.until(1);
  still.standStill();
  asked.open();
  await pair.pass(60_000);
  still.goOn();
  await pair.pass(30_000);
  await one.settled();
  expect(slow.sent).toHaveLength(1);
  expect(await one.outcomes("DispatchSucceeded")).toHaveLength(1);
});

test("a caller on any instance learns the end of a direct send", async () => {
  await using pair = openPair();
  await pair.start("one", [fakeChannel("chat")]);
  const two = await pair.start("two", [fakeChannel("chat")]);
  expect(await two.delivery.settled("chat", await two.append(NOTIFY), 5_000)).toMatchObject({ status: "delivered" });
});

test("all instances see a channel's circuit, and a new dispatcher respects it", async () => {
  await using pair = openPair();
  const [first, second] = [fakeChannel("chat", () => UNAVAILABLE), fakeChannel("chat", () => DELIVERED)];
  const one = await pair.start("one", [first]);
  const two = await pair.start("two", [second]);
  await one.clicks(30);
  await eventually(two.projector, () => two.delivery.circuit("chat") === "open");
  await one.dispatchers[Symbol.asyncDispose]();
  await pair.pass(60_000);
  await two.settled();
  await eventually(one.projector, () => one.delivery.circuit("chat") === "closed");
  expect(first.sent).toHaveLength(5);
});

test("each attempt makes one claim, and any outcome ends it", async () => {
  await using pair = openPair();
  const answers = [UNAVAILABLE, DELIVERED];
  const chat = fakeChannel("chat", () => answers.shift() ?? DELIVERED);
  const one = await pair.start("one", [chat]);
  await one.clicks(1);
  await pair.pass(60_000);
  await one.settled();
  expect(chat.sent).toHaveLength(2);
  const { claims } = one.projector.state("deliveries").chat.lanes.clicks;
  expect([await one.events("DispatchClaimed"), claims.size]).toMatchObject([{ length: 2 }, 0]);
});
