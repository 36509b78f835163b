// On the memory harness.
import { expect, test } from "bun:test";
import { GOOD, openApp, post } from "../harness/memory/app.ts";

test("a click is answered with the id of its event, which names the channels it is dispatched to", async () => {
  await using world = await openApp({ channels: ["ads", "messaging"] });
  const response = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"]);
  const [event] = await world.events("LinkClicked");
  expect([response.status, await response.json()]).toEqual([202, { id: event?.id }]);
  expect(event).toMatchObject({
    stream: "link-sho.rt/spring",
    data: { ...GOOD["/api/tracking/event"], bot: false, channels: ["ads", "messaging"] },
  });
});
