// On the memory harness.
import { Value } from "@sinclair/typebox/value";
import type { Static } from "@sinclair/typebox";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { codec, makeEvent } from "../../../events/catalog.ts";
import { CLICK_CHANNELS } from "../../../events/channel.ts";
import { toClick, trackingBody } from "../../../src/http/features/clicks.ts";
import { GOOD, openApp, post } from "../../harness/memory/app.ts";

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

/** Every member that a body may have, by its type. */
const MEMBERS: Readonly<Record<keyof Static<typeof trackingBody>, fc.Arbitrary<string>>> = {
  event: fc.string({ minLength: 1, maxLength: 64 }),
  domain: fc.string({ maxLength: 253 }),
  short_code: fc.string({ unit: "grapheme", maxLength: 20 }),
  original_url: fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.constant("HTTPS://Shop.Example/a b")),
  ip: fc.oneof(fc.ipV4(), fc.ipV6()),
  user_agent: fc.string({ unit: "grapheme", maxLength: 50 }),
};

test("whatever fits the body's schema makes data that fits the event's, which is not checked again", () => {
  const bodies = fc.record(MEMBERS, { requiredKeys: trackingBody.required });
  fc.assert(
    fc.property(bodies, fc.boolean(), fc.subarray([...CLICK_CHANNELS]), (body, bot, channels) => {
      fc.pre(Value.Check(trackingBody, body));
      const event = makeEvent("LinkClicked", crypto.randomUUID(), toClick(body, bot, channels), {});
      expect(() => codec.encode([event])).not.toThrow();
    }),
  );
});
