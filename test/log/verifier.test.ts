// On the memory harness.
import { expect, test } from "bun:test";
import { StoreClosed, StoreFull, type EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { checkpointFiles } from "../../src/log/checkpoint.ts";
import { createEventLog } from "../../src/log/event-log.ts";
import { logFiles } from "../../src/log/log-files.ts";
import { createLogVerifier } from "../../src/log/verifier.ts";
import { openMemoryLog, randomId, SILENT } from "../harness/memory/log.ts";

/** A verifier of a log with some replaced methods, and its logged and announced lines. */
async function openVerifier(other: (store: EventStore<Event>) => Partial<EventStore<Event>>) {
  const log = await openMemoryLog();
  const said: string[] = [];
  const verifier = createLogVerifier({
    eventLog: createEventLog({ ...log.store, ...other(log.store) }, randomId),
    checkpoints: checkpointFiles(logFiles(log.folder.file("log.sqlite"))),
    clock: () => 0,
    logger: { ...SILENT, error: (message) => void said.push(message) },
    announce: async (text) => void said.push(`announced: ${text}`),
  });
  const verified = async (): Promise<readonly string[]> => {
    await (
      await verifier.start({ caller: "ann" })
    )?.done;
    expect(verifier.progress).toBeUndefined();
    return said;
  };
  return { verified, [Symbol.asyncDispose]: () => log[Symbol.asyncDispose]() };
}

test("a service that stops in the middle ends its verification, and that is no fault", async () => {
  await using world = await openVerifier(() => ({ verify: () => Promise.reject(new StoreClosed()) }));
  expect(await world.verified()).toEqual([]);
});

test("what cannot be verified is logged, and the next verification may begin", async () => {
  await using world = await openVerifier(() => ({ verify: () => Promise.reject(new Error("no thread")) }));
  expect(await world.verified()).toEqual(["the log could not be verified"]);
  expect(await world.verified()).toHaveLength(2);
});

test("of a broken log that takes no event either, the logger knows", async () => {
  const fault = { position: 7, reason: "altered" };
  await using world = await openVerifier((store) => ({
    verify: async () => ({ ok: false, checked: 6, head: await store.head(), fault }),
    append: () => Promise.reject(new StoreFull()),
  }));
  expect(await world.verified()).toEqual(["the log is broken", "a verification could not be recorded"]);
});

test("a log that cannot be asked for its head begins no verification that would never end", async () => {
  await using world = await openVerifier(() => ({ head: () => Promise.reject(new StoreClosed()) }));
  const fault = () => world.verified().catch((reason: unknown) => reason);
  expect([await fault(), await fault()]).toEqual([expect.any(StoreClosed), expect.any(StoreClosed)]);
});
