// On the memory harness.
import { expect, test } from "bun:test";
import { LogDiverged, openSqliteStore, type EventStore } from "eventstore-lite";
import { codec, type Event } from "../../events/catalog.ts";
import { tamper } from "../../events/eventstore-lite/test/tampering.ts";
import { fileClock } from "../../src/log/log-clock.ts";
import { findLoss, signHead, checkpointInVault } from "../../src/log/checkpoint.ts";
import { watchLog } from "../../src/log/log-watchdog.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { sleep } from "../../src/platform/clock.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { METADATA, newLogFile, newNotes, randomId, SILENT } from "../harness/memory/log.ts";

const SEED = new Uint8Array(32).fill(5);

/** An instance that has read `events` events. It checks the log `left` times without a wait. */
async function openInstance(
  events: number,
  other: Partial<EventStore<Event>> = {},
  left = Infinity,
  askKeys = async (): Promise<void> => {},
) {
  const stack = new AsyncDisposableStack();
  const file = newLogFile();
  const notes = newNotes();
  const open = () => openSqliteStore<Event>({ file, codec });
  const store = { ...stack.use(await open()), ...other };
  const projector = stack.use(await startProjector(store));
  const eventLog = createEventLog(store, randomId);
  for (let n = 1; n <= events; n++) {
    await eventLog.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: `${n}` } }], METADATA);
  }
  await projector.until(events);
  const looks = { left, passed: Promise.withResolvers<void>() };
  const watch = stack.use(
    watchLog({
      store,
      askKeys,
      projector,
      async reopen() {
        const log = await open();
        return { ...log, checkpoints: checkpointInVault(notes, SEED) };
      },
      logClock: fileClock(() => 0),
      async sleep(_ms, signal) {
        if (looks.left-- <= 0) {
          looks.passed.resolve();
          await sleep(60_000, signal);
        }
      },
      logger: SILENT,
    }),
  );
  return {
    file,
    watch,
    /** Returns the loss that a start finds in the present log. */
    async start() {
      await using log = await open();
      const checkpoints = checkpointInVault(notes, SEED);
      return (await findLoss(log, checkpoints, await checkpoints.loadKey()))?.sentence;
    },
    /** Signs the head, as an instance does before it has noticed the loss. */
    async sign() {
      await using log = await open();
      const checkpoints = checkpointInVault(notes, SEED);
      await checkpoints.write(await signHead(log, await log.head(), await checkpoints.loadKey(), () => 0));
    },
    async looked(times: number) {
      looks.left = times;
      await looks.passed.promise;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test("a log that lost what was read of it ends the instance, and no start goes on with it unasked", async () => {
  await using instance = await openInstance(9);
  tamper(instance.file, "DELETE FROM events WHERE position > 6");
  expect(await instance.watch.failed).toMatchObject({
    kind: "damaged",
    message: expect.stringContaining("no longer holds position 9"),
  });
  expect(await instance.start()).toContain("the log ends at position 6, but the checkpoint in the vault knew 9");
  await instance.sign();
  expect(await instance.start()).toContain("knew 9 events");
});

test("what the store found by itself is on record too", async () => {
  const failed = Promise.withResolvers<Error>();
  await using instance = await openInstance(3, { failed: failed.promise, confirm: async () => "lost" }, 0);
  failed.resolve(new LogDiverged("position 3 is not what it was"));
  expect(await instance.watch.failed).toMatchObject({ message: expect.stringContaining("position 3") });
  tamper(instance.file, "DELETE FROM events WHERE position > 2");
  expect(await instance.start()).toContain("knew 3 events");
});

test("a log that was replaced ends the instance, which says nothing of a loss to the log that is there now", async () => {
  await using instance = await openInstance(3, { confirm: async () => "replaced" });
  expect(await instance.watch.failed).toMatchObject({
    message: expect.stringContaining("log was replaced or restored"),
  });
  expect(await instance.start()).toBeUndefined();
});

test("a key store that cannot be asked is an outage of the log", async () => {
  await using whole = await openInstance(3);
  await whole.looked(5);
  await using away = await openInstance(3, {}, Infinity, () => Promise.reject(new Error("away")));
  await away.looked(5);
  expect([whole.watch.awaySince(), away.watch.awaySince()]).toEqual([undefined, 0]);
});

test("a log that holds all of it, or cannot be asked, ends nothing", async () => {
  await using whole = await openInstance(3);
  await whole.looked(5);
  await using away = await openInstance(3, { confirm: () => Promise.reject(new Error("away")) });
  await away.looked(5);
  expect([await whole.start(), await away.start()]).toEqual([undefined, undefined]);
});
