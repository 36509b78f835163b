// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { settingsOf } from "../../sandbox/service-settings.ts";
import { post, subscribeStatuses } from "../../sandbox/whatsapp-statuses.ts";
import { BEARER, exported, openInstallation, until } from "../harness/process.ts";

test("a text that WhatsApp accepts and loses becomes an event, and one that it delivers does not", async () => {
  await using world = await openInstallation();
  const { whatsapp } = world.sandbox;
  whatsapp.freeTexts = 1;
  const service = await world.host({
    ...settingsOf(world.sandbox, { messaging: "whatsapp" }),
    WHATSAPP_APP_SECRET: whatsapp.appSecret,
    WHATSAPP_VERIFY_TOKEN: whatsapp.verifyToken,
  });
  await subscribeStatuses(whatsapp, `${service.url}/api/messaging/whatsapp`);
  for (const text of ["free", "beyond"]) {
    const sent = await service.post("/api/messaging", { text }, BEARER);
    expect(await sent.json()).toMatchObject({ status: "delivered" });
  }
  const statuses = () => Promise.resolve(whatsapp.statuses.kept);
  await until(statuses, ({ length }) => length === 2);
  expect(whatsapp.statuses.kept.map(({ status }) => status)).toEqual([200, 200]);
  // Posts each notice again, because Meta repeats notices for days.
  for (const { body } of whatsapp.statuses.kept.slice()) expect(await post(whatsapp, body)).toBe(200);
  const events = (await exported(world)) as unknown as { type: string; id: string; data: Record<string, unknown> }[];
  const beyond = events.find(({ data }) => data["text"] === "beyond")!;
  const lost = events.filter(({ type }) => type === "DispatchLost").map(({ data }) => data);
  expect(lost).toEqual([expect.objectContaining({ event_id: beyond.id, channel: "messaging" })]);
  const shown = await world.command("deliveries", "show", beyond.id);
  expect(shown.out).toContain("messaging: accepted by the network, which lost it afterwards");
});
