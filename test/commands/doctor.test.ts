// On the memory harness.
import { expect, test } from "bun:test";
import { doctor } from "../../src/commands/doctor.ts";
import { openCommands } from "../harness/memory/commands.ts";

const CHAT = { CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T000/B000/XXXX" };
const X = { X_CLIENT_ID: "client", MESSAGE_TEMPLATE: "Hi" };
const META = { META_PIXEL_ID: "1", META_ACCESS_TOKEN: "token" };
const TELEGRAM = { TELEGRAM_BOT_TOKEN: "1:token", TELEGRAM_CHAT_ID: "7" };

test.each([
  [{}, "without faults; not configured: outreach (X_CLIENT_ID), ads, chat, messaging"],
  [CHAT, "without faults; not configured: outreach (X_CLIENT_ID), ads, messaging"],
  [
    { ...CHAT, ...META, ...TELEGRAM, X_CLIENT_ID: "client" },
    "without faults; not configured: the message (MESSAGE_TEMPLATE)",
  ],
  [{ ...CHAT, ...META, ...TELEGRAM, ...X }, "complete"],
])("doctor says what of the configuration is left out: %j", async (settings, told) => {
  await using world = await openCommands(undefined, settings);
  expect((await world.run(doctor)).out).toStartWith(`ok    configuration: ${told}\n`);
});
