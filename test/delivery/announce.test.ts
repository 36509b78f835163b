// On the memory harness.
import { expect, test } from "bun:test";
import type { ChannelName } from "../../events/channel.ts";
import { createAnnounce } from "../../src/delivery/suspension.ts";
import type { Logger } from "../../src/platform/logger.ts";
import { newLogFile } from "../harness/memory/log.ts";
import { openDelivery } from "../harness/memory/delivery.ts";

function silent(warned: string[] = []): Logger {
  return { debug() {}, info() {}, warn: (text) => warned.push(text), error() {} };
}

test("an occasion is announced once, over restarts too", async () => {
  const file = newLogFile();
  for (let life = 0; life < 2; life++) {
    await using house = await openDelivery({ file });
    const announce = createAnnounce({ ...house, configured: ["chat"], logger: silent() });
    await announce("the grant is dead", "grant/1");
    await announce("the grant is dead", "grant/1");
    expect((await house.events("NotificationRequested")).map(({ data }) => data)).toEqual([
      { message: "the grant is dead", service: "reachlog", level: "critical" },
    ]);
  }
});

const ways: [string, ChannelName[], ChannelName | undefined, string[]][] = [
  ["chat", ["ads", "chat", "messaging"], undefined, ["NotificationRequested"]],
  ["messaging where chat is what failed", ["chat", "messaging"], "chat", ["MessageRequested"]],
  ["messaging where there is no chat", ["ads", "messaging"], undefined, ["MessageRequested"]],
  ["the service's own log where nothing else is left", ["ads", "chat"], "chat", []],
];

test.each(ways)("it is announced on %s", async (_name, configured, failed, types) => {
  const warned: string[] = [];
  await using house = await openDelivery();
  const announce = createAnnounce({ ...house, configured, logger: silent(warned) });
  await announce("look here", "key", failed);
  const announced = await house.events("NotificationRequested", "MessageRequested");
  expect(announced.map(({ type }) => type as string)).toEqual(types);
  expect(warned).toEqual(types.length === 0 ? ["look here"] : []);
});

test("nothing is announced on a channel that is suspended", async () => {
  const warned: string[] = [];
  await using house = await openDelivery();
  const announce = createAnnounce({ ...house, configured: ["chat", "messaging"], logger: silent(warned) });
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
