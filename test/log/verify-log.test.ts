// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { StoreClosed, type EventStore } from "eventstore-lite";
import { checkpointFiles } from "eventstore-lite/proof";
import { StoreFull } from "eventstore-lite/testing";
import type { Event } from "../../events/event-types-and-codec.ts";
import { createEventLog } from "../../src/log/event-log.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { createLogVerifier } from "../../src/log/verify-log.ts";
import { openMemoryLog, randomId, SILENT, toStateContext } from "../harness/in-process/temporary-log.ts";
import type { Projector } from "../../src/projector/projector.ts";

/**
 * Opens a verifier of a log in which `other` replaces some methods. Also returns the lines that it logs and announces.
 */
async function openVerifier(other: (store: EventStore<Event>) => Partial<EventStore<Event>>) {
  const log = await openMemoryLog();
  const said: string[] = [];
  const eventLog = createEventLog({ ...log.store, ...other(log.store) }, randomId);
  const context = toStateContext(
    { eventLog, projector: {} as Projector },
    {
      clock: () => 0,
      logger: { ...SILENT, error: (message) => void said.push(message) },
      announce: async (text) => void said.push(`announced: ${text}`),
    },
  );
  const verifier = createLogVerifier(context, checkpointFiles(logFiles(log.folder.file("log.sqlite"))));
  const verified = async (): Promise<readonly string[]> => {
    await (
      await verifier.start({ caller: "ann" })
    )?.done;
    expect(verifier.progress).toBeUndefined();
    return said;
  };
  return { verified, [Symbol.asyncDispose]: () => log[Symbol.asyncDispose]() };
}

test("a service that stops during a verification logs no fault", async () => {
  await using world = await openVerifier(() => ({ verify: () => Promise.reject(new StoreClosed()) }));
  expect(await world.verified()).toEqual([]);
});

test("a failed verification is logged, and the next one can start", async () => {
  await using world = await openVerifier(() => ({ verify: () => Promise.reject(new Error("no thread")) }));
  expect(await world.verified()).toEqual(["the log could not be verified"]);
  expect(await world.verified()).toHaveLength(2);
});

test("a broken log is logged even if the event cannot be appended", async () => {
  const fault = { position: 7, reason: "altered" };
  await using world = await openVerifier((store) => ({
    verify: async () => ({ ok: false, checked: 6, head: await store.head(), fault }),
    append: () => Promise.reject(new StoreFull()),
  }));
  expect(await world.verified()).toEqual(["the log is broken", "a verification could not be recorded"]);
});

test("an unreadable head fails the start of each verification", async () => {
  await using world = await openVerifier(() => ({ head: () => Promise.reject(new StoreClosed()) }));
  const fault = () => world.verified().catch((reason: unknown) => reason);
  expect([await fault(), await fault()]).toEqual([expect.any(StoreClosed), expect.any(StoreClosed)]);
});
