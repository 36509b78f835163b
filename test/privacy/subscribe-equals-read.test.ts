// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { anyEvent } from "../events/generate-events-from-schema.ts";
import { openCommands } from "../harness/in-process/commands.ts";

test("a subscriber gets the same events as a read of the log, also those appended here", async () => {
  await using world = await openCommands();
  const { store } = world;
  const appends = fc.sample(fc.array(anyEvent, { minLength: 1, maxLength: 7 }), { numRuns: 300, seed: 4711 });
  const count = appends.flat().length;
  const live = (async () => {
    const events = [];
    for await (const event of store.subscribe({ from: 1, signal: new AbortController().signal })) {
      if (events.push(event) === count) return events;
    }
    return events;
  })();
  // Appends the events concurrently, so that one transaction holds several appends.
  await Promise.all(appends.map((events, index) => store.append(`s${index % 20}`, events)));
  const followed = await live;
  const read = await Array.fromAsync(store.read());
  expect(read).toHaveLength(count);
  for (const [index, event] of read.entries()) expect(followed[index]).toEqual(event);
  const given = new Set(appends.flat().map(({ data }) => data));
  expect(followed.filter(({ data }) => given.has(data)).length).toBeGreaterThan(count / 2);
  expect(await store.verify()).toMatchObject({ ok: true, checked: count });
});
