// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { clicks } from "../../projections/clicks.ts";
import { openExistingLog } from "../../src/commands/shared/open-log-and-record-reads.ts";
import { foldInWorker } from "../../src/service/fold-in-worker.ts";
import { foldPart, type RebuildOptions, loadPartial, savePartial } from "../../src/log/rebuild-projections.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { writeMixedLog } from "../bench/write-mixed-log.ts";
import { countCases } from "../harness/case-count.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { open, rebuildAll, servedLog, spoil, storedTexts, truth } from "../projector/spoil-snapshots-and-rebuild.ts";

/**
 * Returns options by which a rebuild folds in this thread what its worker thread would fold. The fold uses a separate
 * connection, as the worker thread does.
 */
function besideOn(file: string): Pick<RebuildOptions, "foldInWorker" | "workerPositionsMin"> {
  return {
    workerPositionsMin: 0,
    async foldInWorker(order, signal) {
      await using store = await open(file);
      await foldPart(store, order, { signal, onBegin() {}, onProgress() {} });
    },
  };
}

test("a rebuild on two threads gives the same states as on one, even when interrupted", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        seed: fc.nat(1_000),
        events: fc.integer({ min: 1, max: 1_000 }),
        stops: fc.array(fc.nat(1_000), { maxLength: 2 }),
      }),
      async ({ seed, events, stops }) => {
        const file = newLogFile();
        await writeMixedLog(file, events, { seed });
        await using store = await open(file);
        for (const stop of stops) {
          const interrupt = new AbortController();
          const onProgress = (position: number): void => void (position >= stop && interrupt.abort());
          await rebuildAll(store, { ...besideOn(file), signal: interrupt.signal, onProgress });
        }
        const rebuilt = await rebuildAll(store, besideOn(file));
        const texts = await storedTexts(store);
        expect(texts).toEqual(await truth(store, events));
        const onOne = await rebuildAll(store, { restart: true });
        expect(rebuilt?.map((one) => one.events)).toEqual(onOne?.map((one) => one.events));
      },
    ),
    { numRuns: countCases(8) },
  );
});

test("a rebuild reports the differences that the worker found", async () => {
  const file = await servedLog();
  await using store = await open(file);
  await spoil(store, "clicks", (state) => (state.total += 1));
  await spoil(store, "deliveries", ({ ads }) => (ads.dead += 1));
  const rebuilt = (await rebuildAll(store, besideOn(file))) ?? [];
  const found = rebuilt.filter(({ differences }) => differences?.length !== 0).map(({ projection }) => projection);
  expect(found).toEqual(["deliveries", "clicks"]);
});

test("the worker opens the log with the same settings and stores its partial states", async () => {
  const file = await servedLog();
  const env = { DATABASE_URL: `sqlite:${file}` };
  await using store = await openExistingLog({ env });
  const { position: to } = await store.head();
  await foldInWorker({ env, names: ["clicks", "contacts"], to }, new AbortController().signal);
  for (const name of ["clicks", "contacts"] as const) {
    const partial = await loadPartial(store, name);
    expect([partial?.position, encodeState(partial?.state)]).toEqual([to, (await truth(store))[name] ?? ""]);
  }
});

test("the main thread folds what a failed worker did not fold", async () => {
  await using store = await open(await servedLog());
  const failing = () => Promise.reject(new Error("the thread ended"));
  expect(await rebuildAll(store, { foldInWorker: failing, workerPositionsMin: 0 })).toHaveLength(
    PROJECTION_NAMES.length,
  );
  expect(await storedTexts(store)).toEqual(await truth(store, 2_000));
});

test("a restarted rebuild ignores stored partial states, even if the worker fails", async () => {
  await using store = await open(await servedLog());
  const interrupt = new AbortController();
  const onProgress = (): void => interrupt.abort();
  expect(await rebuildAll(store, { signal: interrupt.signal, onProgress })).toBeUndefined();
  const partial = await loadPartial(store, "clicks");
  if (partial === undefined) throw new Error("nothing was kept");
  await savePartial(store, "clicks", { ...partial, state: clicks.initial() });
  const failing = () => Promise.reject(new Error("the thread ended"));
  await rebuildAll(store, { foldInWorker: failing, workerPositionsMin: 0, restart: true });
  expect(await storedTexts(store)).toEqual(await truth(store, 2_000));
});
