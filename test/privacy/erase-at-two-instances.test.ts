// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Event } from "../../events/event-types-and-codec.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { forgetAddress, forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const ANN = { id: "1001", username: "ann_builds" };
const [HERS, OTHER] = ["203.0.113.7", "203.0.113.8"];

const isErased = ({ meta }: Event): boolean => meta.erased === true;

test.each(ENGINES)("with a log %s, an erasure at one instance takes effect at the other", async (_name, where) => {
  await using stack = new AsyncDisposableStack();
  const log = await where(stack);
  const [here, there] = [await openInstance(stack, log), await openInstance(stack, log)];
  const imported = { recipient: ANN, name: "Ann Bell", basis: "opt_in", fields: {}, source: "list" } as const;
  await here.eventLog.append(STREAMS.outreach, [{ type: "RecipientAdded", data: imported }], {});
  await here.eventLog.append("links", [clickOf({ ip: HERS, channels: [] })], {});
  const { last } = await there.eventLog.append("links", [clickOf({ ip: OTHER, channels: [] })], {});
  await there.projector.until(last);
  expect(findPerson(there.projector.state("contacts"), ANN)?.name).toBe("Ann Bell");
  expect((await Array.fromAsync(there.store.read())).some(isErased)).toBe(false);

  const options = { metadata: {}, signal: new AbortController().signal };
  await forgetPerson(here, (contacts) => findPerson(contacts, ANN), options);
  await forgetAddress(here, HERS, options);
  await there.projector.until((await here.store.head()).position);
  expect(findPerson(there.projector.state("contacts"), ANN)).toBeUndefined();
  const read = await Array.fromAsync(there.store.read());
  expect(read.slice(0, 3).map(isErased)).toEqual([true, true, false]);

  // Events about the recipient that either instance appends after the erasure are erased too.
  for (const { eventLog } of [here, there]) {
    await eventLog.append(STREAMS.outreach, [{ type: "RecipientAdded", data: imported }], {});
  }
  for (const { store } of [here, there]) {
    const last = await Array.fromAsync(store.read({ backwards: true, limit: 2 }));
    expect(last.map(isErased)).toEqual([true, true]);
  }
  expect(there.store.keyring.isForgotten(ANN)).toBe(true);
});
