// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { clicks } from "../../projections/clicks.ts";
import { openExistingLog } from "../../src/commands/shared/log-session.ts";
import { foldInWorker } from "../../src/service/fold-in-worker.ts";
import { foldPart, type RebuildOptions, loadPartial, savePartial } from "../../src/log/rebuild.ts";
import { encodeState } from "../../projections/snapshot.ts";
import { writeMixedLog } from "../bench/mixed-log.ts";
import { newLogFile } from "../harness/memory/log.ts";
import { open, rebuildAll, servedLog, spoil, storedTexts, truth } from "../projector/rebuilding.ts";

/** Folds the part on a separate connection, as the worker thread does. */
function besideOn(file: string): Pick<RebuildOptions, "foldInWorker" | "workerPositionsMin"> {
  return {
    workerPositionsMin: 0,
    async foldInWorker(order, signal) {
      await using store = await open(file);
      await foldPart(store, order, { signal, onBegin() {}, onProgress() {} });
    },
  };
}

test("on two threads a rebuild comes to the states of one, also interrupted anywhere", async () => {
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
    { numRuns: 8 },
  );
});

test("what the other thread found to differ is told", async () => {
  const file = await servedLog();
  await using store = await open(file);
  await spoil(store, "clicks", (state) => (state.total += 1));
  await spoil(store, "deliveries", ({ ads }) => (ads.dead += 1));
  const rebuilt = (await rebuildAll(store, besideOn(file))) ?? [];
  const found = rebuilt.filter(({ differences }) => differences?.length !== 0).map(({ projection }) => projection);
  expect(found).toEqual(["deliveries", "clicks"]);
});

test("the thread opens the log by the same settings, and keeps what it folded, encrypted where it is personal", async () => {
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

test("what a thread that fails has not folded is folded here", async () => {
  await using store = await open(await servedLog());
  const failing = () => Promise.reject(new Error("the thread ended"));
  expect(await rebuildAll(store, { foldInWorker: failing, workerPositionsMin: 0 })).toHaveLength(
    PROJECTION_NAMES.length,
  );
  expect(await storedTexts(store)).toEqual(await truth(store, 2_000));
});

test("told to start over, it resumes from nothing that was kept, also where the thread fails", async () => {
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
