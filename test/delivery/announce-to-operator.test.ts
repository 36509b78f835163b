// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { createAnnounce } from "../../src/delivery/suspend-channel-and-alert-operator.ts";
import type { Logger } from "../../src/platform/logger.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { openDelivery } from "../harness/in-process/delivery.ts";

function silent(warned: string[] = []): Logger {
  return { debug() {}, info() {}, warn: (text) => warned.push(text), error() {} };
}

test("an occasion is announced once, even after a restart", async () => {
  const file = newLogFile();
  for (let life = 0; life < 2; life++) {
    await using house = await openDelivery({ file });
    const announce = createAnnounce({ ...house.context, logger: silent() }, house.projector, ["chat"]);
    await announce("the grant is dead", "grant/1");
    await announce("the grant is dead", "grant/1");
    expect((await house.events("NotificationRequested")).map(({ data }) => data)).toEqual([
      { message: "the grant is dead", service: "reachlog", level: "critical" },
    ]);
  }
});

const ways: [string, ChannelName[], ChannelName | undefined, string[]][] = [
  ["chat", ["ads", "chat", "messaging"], undefined, ["NotificationRequested"]],
  ["messaging if chat is the failed channel", ["chat", "messaging"], "chat", ["MessageRequested"]],
  ["messaging if chat is not configured", ["ads", "messaging"], undefined, ["MessageRequested"]],
  ["the service's logger if no other channel is configured", ["ads", "chat"], "chat", []],
];

test.each(ways)("an announcement goes to %s", async (_name, configured, failed, types) => {
  const warned: string[] = [];
  await using house = await openDelivery();
  const announce = createAnnounce({ ...house.context, logger: silent(warned) }, house.projector, configured);
  await announce("look here", "key", failed);
  const announced = await house.events("NotificationRequested", "MessageRequested");
  expect(announced.map(({ type }) => type as string)).toEqual(types);
  expect(warned).toEqual(types.length === 0 ? ["look here"] : []);
});

test("no announcement goes to a suspended channel", async () => {
  const warned: string[] = [];
  await using house = await openDelivery();
  const announce = createAnnounce({ ...house.context, logger: silent(warned) }, house.projector, ["chat", "messaging"]);
  const stop = (channel: ChannelName) =>
    house.append({
      type: "ChannelSuspended",
      data: { channel, network: "slack", detail: "no_service", credential: "c" },
    });
  await stop("chat");
  await announce("look here", "first");
  expect((await house.events("MessageRequested")).map(({ data }) => data.text)).toEqual(["reachlog: look here"]);
  await stop("messaging");
  await announce("look there", "second");
  expect([await house.events("NotificationRequested"), warned]).toEqual([[], ["look there"]]);
});
