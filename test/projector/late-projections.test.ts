// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { StoreUnavailable } from "eventstore-lite/testing";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName } from "../../projections/all.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { createEraseHandler } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { ProjectionFolding } from "../../src/projector/late-projections.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { foldLog } from "../harness/fold-log.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { gateFolds } from "../harness/in-process/gated-folds.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { open, rebuildAll, servedLog, snapshotOf, storedTexts, textsOf, truth } from "./spoil-snapshots-and-rebuild.ts";

const ANN = "ann_builds";

const imported = (username: string): NewEvent => ({
  type: "RecipientAdded",
  data: { recipient: { username }, name: `Name of ${username}`, basis: "opt_in", fields: {}, source: "list" },
});

const EVENTS = [
  imported(ANN),
  imported("bea_codes"),
  imported("cyd_tests"),
  ...Array.from({ length: 30 }, () => clickOf({})),
];

/** Waits until all projections are complete at the end of the log, and returns their states as text. */
async function complete(projector: Projector, store: LogStore): Promise<Record<string, string>> {
  await projector.folded(PROJECTION_NAMES);
  await projector.until((await store.head()).position);
  return textsOf((name) => projector.state(name));
}

function refusedNames(projector: Projector): readonly ProjectionName[] {
  return PROJECTION_NAMES.filter((name) => {
    try {
      projector.state(name);
      return false;
    } catch (fault) {
      expect(fault).toBeInstanceOf(ProjectionFolding);
      return true;
    }
  });
}

/** Waits until `holds` returns true. A fold that is not held back makes it true within some turns of the event loop. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

describe.each(ENGINES)("a log without snapshots, %s", (_place, make) => {
  test("is followed at once, and states are refused until they are complete", async () => {
    await using stack = new AsyncDisposableStack();
    const { store, eventLog } = await openInstance(stack, await make(stack));
    await eventLog.append(STREAMS.outreach, EVENTS, {});
    const gate = gateFolds(store);
    await using projector = await startProjector(gate.store, { lateAfter: 0 });
    expect(projector.position).toBe(EVENTS.length);
    expect(refusedNames(projector)).toEqual(PROJECTION_NAMES);
    gate.let(1);
    await until(() => (projector.folding().get("contacts") ?? 0) > 0);
    expect(refusedNames(projector)).toEqual(PROJECTION_NAMES);
    const { last } = await eventLog.append(STREAMS.outreach, [imported("eve_deploys"), clickOf({})], {});
    await projector.until(last);
    expect(refusedNames(projector)).toEqual(PROJECTION_NAMES);
    gate.let(Infinity);
    expect(await complete(projector, store)).toEqual(await truth(store));
    expect(projector.folding().size).toBe(0);
    const after = await eventLog.append(STREAMS.outreach, [imported("dan_ships"), clickOf({})], {});
    await projector.until(after.last);
    expect(textsOf((name) => projector.state(name))).toEqual(await truth(store));
  });

  test("is folded without a recipient who is forgotten during the fold", async () => {
    await using stack = new AsyncDisposableStack();
    const { store, eventLog, ...instance } = await openInstance(stack, await make(stack));
    await eventLog.append(STREAMS.outreach, EVENTS, {});
    const gate = gateFolds(store);
    const met = Promise.withResolvers<void>();
    const subscribeBatches: LogStore["subscribeBatches"] = async function* (query) {
      for await (const batch of store.subscribeBatches(query)) {
        if (batch.some(({ type }) => type === "PersonForgotten")) met.resolve();
        yield batch;
      }
    };
    const erase = createEraseHandler(store.keyring);
    await using projector = await startProjector({ ...gate.store, subscribeBatches }, { lateAfter: 0, erase });
    gate.let(1);
    await until(() => (projector.folding().get("contacts") ?? 0) > 0);
    const deps = { ...instance, eventLog };
    const { signal } = new AbortController();
    const find = (contacts: Contacts) => findContact(contacts, { username: ANN });
    expect((await forgetPerson(deps, find, { metadata: {}, signal }))?.keys).toBeGreaterThan(0);
    await met.promise;
    const before = gate.seen.length;
    // Lets the background fold read one event. It then notices the erasure, and begins again to fold the projections
    // that hold personal data.
    gate.let(1);
    await until(() => gate.seen.length > before);
    gate.let(Infinity);
    const texts = await complete(projector, store);
    expect(texts).toEqual(await truth(store));
    expect(JSON.stringify(texts)).not.toContain(ANN);
    expect(JSON.stringify(texts)).toContain("bea_codes");
    await projector[Symbol.asyncDispose]();
    expect(JSON.stringify(await storedTexts(store))).not.toContain(ANN);
  });

  test("is folded completely by the next start after an interrupted fold", async () => {
    await using stack = new AsyncDisposableStack();
    const { store, eventLog } = await openInstance(stack, await make(stack));
    await eventLog.append(STREAMS.outreach, EVENTS, {});
    const gate = gateFolds(store);
    const stopped = await startProjector(gate.store, { lateAfter: 0 });
    gate.let(1);
    await until(() => (stopped.folding().get("contacts") ?? 0) > 0);
    const stopping = stopped[Symbol.asyncDispose]();
    // The background fold reads the one event for which it waits, and notices that it should stop.
    gate.let(1);
    await stopping;
    expect(Object.values(await storedTexts(store)).filter((text) => text !== "")).toEqual([]);
    await using next = await startProjector(store, { lateAfter: 0 });
    expect(await complete(next, store)).toEqual(await truth(store));
  });
});

describe("a changed projection", () => {
  /** Creates a log in which the snapshot of one projection has an old version, so that only the others are valid. */
  async function changedLog(name: ProjectionName) {
    const store = await open(await servedLog());
    const old = await store.snapshots.load(name);
    await store.snapshots.save(name, { ...old!, version: projectionOf(name).version - 1 });
    return store;
  }

  test.each(["visits", "quota", "contacts"] as const)(
    "is the only one refused until it is folded (%s)",
    async (name) => {
      await using store = await changedLog(name);
      const gate = gateFolds(store);
      await using projector = await startProjector(gate.store, { lateAfter: 100 });
      expect(refusedNames(projector)).toEqual([name]);
      expect([...projector.folding().keys()]).toEqual([name]);
      gate.let(Infinity);
      expect(await complete(projector, store)).toEqual(await truth(store));
      await projector[Symbol.asyncDispose]();
      expect(await storedTexts(store)).toEqual(await truth(store));
    },
  );

  test("continues from the snapshot of an earlier start", async () => {
    await using store = await changedLog("visits");
    const { states } = await foldLog(store, ["visits"], { to: 900 });
    await store.snapshots.save("visits", snapshotOf("visits", 900, states.visits));
    const gate = gateFolds(store);
    await using projector = await startProjector(gate.store, { lateAfter: 100 });
    gate.let(Infinity);
    expect(await complete(projector, store)).toEqual(await truth(store));
    expect(Math.min(...gate.seen.map((from) => from ?? 1))).toBeGreaterThan(900);
  });

  test("is folded before the start resolves if few events are missing", async () => {
    await using store = await changedLog("visits");
    await using projector = await startProjector(store, { lateAfter: 1_000_000 });
    expect(refusedNames(projector)).toEqual([]);
    expect(textsOf((name) => projector.state(name))).toEqual(await truth(store));
  });

  test("is complete early if a replay rebuilds it during the fold", async () => {
    await using store = await changedLog("visits");
    const gate = gateFolds(store);
    await using projector = await startProjector(gate.store, { lateAfter: 100 });
    gate.let(1);
    await until(() => (projector.folding().get("visits") ?? 0) > 0);
    await rebuildAll(store, {}, ["visits"]);
    // Lets the background fold read 200 more events. This suffices for the events after the rebuild, but not for the
    // whole log.
    gate.let(200);
    expect(await complete(projector, store)).toEqual(await truth(store));
  });

  test("continues its fold after the log was briefly unavailable", async () => {
    await using store = await changedLog("visits");
    let isAway = true;
    const readFolded: LogStore["readFolded"] = async function* (query) {
      for await (const batch of store.readFolded(query)) {
        yield batch.slice(0, 10);
        if (isAway) {
          isAway = false;
          throw new StoreUnavailable("away");
        }
        yield batch.slice(10);
      }
    };
    await using projector = await startProjector({ ...store, readFolded }, { lateAfter: 100 });
    expect(await complete(projector, store)).toEqual(await truth(store));
    expect(isAway).toBe(false);
  });

  test("fails the projector if it cannot be folded", async () => {
    await using store = await changedLog("visits");
    const readFolded: LogStore["readFolded"] = () => {
      throw new Error("a defect");
    };
    await using projector = await startProjector({ ...store, readFolded }, { lateAfter: 100 });
    expect(projector.failed).rejects.toThrow("a defect");
    expect(refusedNames(projector)).toEqual(["visits"]);
  });
});
