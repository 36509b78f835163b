import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { newEvent, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { expectWhole } from "./compare-log-with-ledger.ts";
import { appendRoundsUnder } from "./inject-syscall-fault.ts";
import { startProgram } from "./start-program.ts";
import { lacks } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KILLS = 50;
/**
 * Maximum time in ms from the start of a process until it is killed; the actual time is random. The process creates the
 * log after some 40 to 100 ms.
 */
const CREATION_MS_MAX = 120;

/** Number of write calls in the creation of a log, counted with strace. A process is killed at each of them in turn. */
const WRITES = 43;
/** Number of fsync calls in the creation of a log, counted with strace. A process is killed at each of them in turn. */
const SYNCS = 7;

test(`the next start succeeds after each of ${KILLS} times kill -9 during a log's creation`, async () => {
  let kept = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const file = newLogPath();
    const program = startProgram("append-keyed", { arguments: [file, "0", "0"] });
    await Bun.sleep(Math.random() * CREATION_MS_MAX);
    await program.kill();
    if ((await restart(file)) > 0) kept += 1;
  }
  console.log(`kill -9 around creation ${KILLS}: bad starts 0, logs with events ${kept}`);
});

test.skipIf(lacks("strace"))(
  `the next start succeeds after kill -9 at each of the ${WRITES + SYNCS} calls that create a log`,
  async () => {
    const injections = [
      ...Array.from({ length: WRITES }, (_, index) => `pwrite64:signal=SIGKILL:when=${index + 1}`),
      ...Array.from({ length: SYNCS }, (_, index) => `fsync:signal=SIGKILL:when=${index + 1}`),
    ];
    let appended = 0;
    for (const injection of injections) {
      const file = newLogPath();
      const { isInjected, ledger } = await appendRoundsUnder(injection, file);
      expect({ injection, isInjected }).toEqual({ injection, isInjected: true });
      appended += ledger.asked.size;
      await restart(file);
    }
    console.log(`kill -9 at each call of creation ${injections.length}: bad starts 0`);
    // A process that is killed while it creates the log has begun no append; one that is killed in its first append has
    // begun one. Later kills would raise the sum of begun appends to at least the number of kills.
    expect(appended).toBeLessThan(injections.length);
  },
);

/**
 * Opens the log that a killed process left, appends to it, and returns how many events it had. Throws if this fails.
 */
async function restart(file: string): Promise<number> {
  await using store = await openSqliteStore({ file, owner: true });
  const { position } = await store.head();
  expect(await store.append("new", [newEvent()])).toMatchObject({ first: position + 1, version: 1 });
  await expectWhole(store, await take(store.read()));
  return position;
}
