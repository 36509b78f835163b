// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import { LogDiverged } from "eventstore-lite/testing";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { tamper } from "../../events/eventstore-lite/test/tampering.ts";
import { fileClock } from "../../src/log/log-time-and-clock-skew.ts";
import { findLoss, signHead, checkpointInVault } from "../../src/log/sign-and-compare-checkpoints.ts";
import { watchLog } from "../../src/log/watch-for-lost-or-replaced-log.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { sleep } from "../../src/platform/clock-ids-and-timers.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { METADATA, newLogFile, newNotes, randomId, toStateContext } from "../harness/in-process/temporary-log.ts";

const SEED = new Uint8Array(32).fill(5);

/**
 * Opens an instance that has read `events` events. Its watchdog checks the log `left` times in a row, then waits for
 * ever.
 */
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
      ...toStateContext({ eventLog, projector }),
      askKeys,
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
    }),
  );
  return {
    file,
    watch,
    /** Returns the loss of events that a start of the service finds in the present log. */
    async start() {
      await using log = await open();
      const checkpoints = checkpointInVault(notes, SEED);
      return (await findLoss(log, checkpoints, await checkpoints.loadKey()))?.sentence;
    },
    /**
     * Signs the last event of the present log and stores the signature in the vault. An instance does this too while it
     * has not noticed yet that the log lost events.
     */
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

test("a log that lost events ends the instance, and the next start finds the loss", async () => {
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

test("a divergence found by the store ends the instance, and the next start reports it", async () => {
  const failed = Promise.withResolvers<Error>();
  await using instance = await openInstance(3, { failed: failed.promise, confirm: async () => "lost" }, 0);
  failed.resolve(new LogDiverged("position 3 is not what it was"));
  expect(await instance.watch.failed).toMatchObject({ message: expect.stringContaining("position 3") });
  tamper(instance.file, "DELETE FROM events WHERE position > 2");
  expect(await instance.start()).toContain("knew 3 events");
});

test("a replaced log ends the instance without recording a loss for the new log", async () => {
  await using instance = await openInstance(3, { confirm: async () => "replaced" });
  expect(await instance.watch.failed).toMatchObject({
    message: expect.stringContaining("log was replaced or restored"),
  });
  expect(await instance.start()).toBeUndefined();
});

test("an unreachable key store counts as an outage of the log", async () => {
  await using whole = await openInstance(3);
  await whole.looked(5);
  await using away = await openInstance(3, {}, Infinity, () => Promise.reject(new Error("away")));
  await away.looked(5);
  expect([whole.watch.awaySince(), away.watch.awaySince()]).toEqual([undefined, 0]);
});

test("an intact or unreachable log records no loss", async () => {
  await using whole = await openInstance(3);
  await whole.looked(5);
  await using away = await openInstance(3, { confirm: () => Promise.reject(new Error("away")) });
  await away.looked(5);
  expect([await whole.start(), await away.start()]).toEqual([undefined, undefined]);
});
