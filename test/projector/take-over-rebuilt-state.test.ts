// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { rebuiltName } from "../../src/projector/past-snapshots.ts";
import {
  open,
  rebuildAll,
  recordingLog,
  servedLog,
  snapshotOf,
  spoil,
  textsOf,
  truth,
} from "./spoil-snapshots-and-rebuild.ts";

function skip(): Event {
  return makeEvent("DirectMessageSkipped", makeId(), { run_id: "r", recipient: { id: "1" }, reason: "self" }, {});
}

/** Creates the event that a rebuild of `stats` appends. */
function told(position: number, version = projectionOf("stats").version): Event {
  return makeEvent("ProjectionRebuilt", makeId(), { projection: "stats", version, position }, {});
}

/**
 * Creates a log with wrong snapshots: they contain messages that were never sent, and suppressions that never happened.
 */
async function spoiltLog(): Promise<string> {
  const file = await servedLog();
  await using store = await open(file);
  await spoil(store, "stats", (state) => (state.sent += 1_000));
  await spoil(store, "contacts", ({ people }) => {
    for (const person of people.values()) person.suppressed = true;
  });
  return file;
}

async function upToDate(projector: Projector, store: EventStore<Event>): Promise<Record<string, string>> {
  await projector.until((await store.head()).position);
  return textsOf((name) => projector.state(name));
}

describe("a service that takes over a rebuilt state", () => {
  test("corrects a wrong state at once and continues from it", async () => {
    await using store = await open(await spoiltLog());
    await using projector = await startProjector(store);
    expect(projector.state("stats").sent).toBeGreaterThan(1_000);
    const { skipped } = projector.state("stats");
    await rebuildAll(store);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
    await store.append("outreach", [skip(), skip()]);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
    expect(projector.state("stats").skipped).toBe(skipped + 2);
  });

  test("logs the members that differed but no personal data", async () => {
    await using store = await open(await spoiltLog());
    const log = recordingLog();
    await using projector = await startProjector(store, { logger: log });
    await rebuildAll(store);
    await upToDate(projector, store);
    const warned = log.lines.filter(({ level }) => level === "warn");
    expect(warned.map(({ projection, members }) => [projection, members])).toEqual([
      ["stats", "sent"],
      ["contacts", "people"],
    ]);
    expect(log.lines).toHaveLength(PROJECTION_NAMES.length);
    expect(JSON.stringify(log.lines)).not.toContain("person_");
  });

  test("accepts it from another process while events arrive", async () => {
    const file = await spoiltLog();
    await using store = await open(file);
    await using projector = await startProjector(store);
    await using command = await open(file);
    const done = new AbortController();
    const serving = (async () => {
      while (!done.signal.aborted) await store.append("outreach", [skip()]);
    })();
    await rebuildAll(command);
    done.abort();
    await serving;
    await projector.until((await command.head()).position);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
  });

  test("handles two concurrent rebuilds", async () => {
    const file = await spoiltLog();
    await using store = await open(file);
    await using projector = await startProjector(store);
    await using one = await open(file);
    await using other = await open(file);
    const [first, second] = await Promise.all([rebuildAll(one), rebuildAll(other)]);
    expect([first?.length, second?.length]).toEqual([PROJECTION_NAMES.length, PROJECTION_NAMES.length]);
    await projector.until((await one.head()).position);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
  });
});

describe("the live state is kept if the rebuilt one", () => {
  const wrong = { sent: 77, skipped: 77, failed: 77, contacted: 7 };

  test("has another version of the projection", async () => {
    await using store = await open(await servedLog());
    const log = recordingLog();
    await using projector = await startProjector(store, { logger: log });
    const { position } = await store.head();
    await store.snapshots.save(rebuiltName("stats"), snapshotOf("stats", position, wrong, 99));
    await store.append("projections", [told(position, 99)]);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
    expect(log.lines.map(({ level }) => level)).toEqual(["info"]);
  });

  test("was replaced by one at a later position", async () => {
    await using store = await open(await servedLog());
    await using projector = await startProjector(store);
    const { position } = await store.head();
    await store.snapshots.save(rebuiltName("stats"), snapshotOf("stats", position + 2, wrong));
    await store.append("projections", [told(position), skip(), skip()]);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
  });

  test("is missing, unreadable or of an unknown projection, which is logged", async () => {
    await using store = await open(await servedLog());
    const log = recordingLog();
    await using projector = await startProjector(store, { logger: log });
    const { position } = await store.head();
    await store.append("projections", [told(position)]);
    await upToDate(projector, store);
    await store.snapshots.save(rebuiltName("stats"), { version: projectionOf("stats").version, position, state: "{" });
    const unknown = { projection: "weather", version: 1, position };
    await store.append("projections", [told(position), makeEvent("ProjectionRebuilt", makeId(), unknown, {})]);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
    expect(log.lines.map(({ level }) => level)).toEqual(["info", "error", "info"]);
  });
});

describe("a start after a rebuild", () => {
  test("uses the rebuilt state instead of an outdated snapshot", async () => {
    const file = await spoiltLog();
    await using store = await open(file);
    const left = await store.snapshots.load("stats");
    await rebuildAll(store);
    if (left !== undefined) await store.snapshots.save("stats", left);
    await store.append("outreach", [skip()]);
    await using projector = await startProjector(store);
    expect(await upToDate(projector, store)).toEqual(await truth(store));
  });

  test("uses a snapshot saved after the rebuild", async () => {
    await using store = await open(await servedLog());
    await rebuildAll(store);
    const { position } = await store.head();
    const later = { sent: 5, skipped: 5, failed: 5, contacted: 0 };
    await store.snapshots.save("stats", snapshotOf("stats", position, later));
    await using projector = await startProjector(store);
    expect(projector.state("stats")).toEqual(later);
  });

  test("gives correct states if the service stopped in the middle of the take-over", async () => {
    const file = await spoiltLog();
    await using store = await open(file);
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const slow = {
      ...store,
      snapshots: {
        ...store.snapshots,
        async load(name: string) {
          if (name === rebuiltName("contacts")) {
            asked.resolve();
            await gate.promise;
          }
          return store.snapshots.load(name);
        },
      },
    };
    const projector = await startProjector(slow);
    await rebuildAll(store);
    await asked.promise;
    const stopped = projector[Symbol.asyncDispose]();
    gate.resolve();
    await stopped;
    await using next = await startProjector(store);
    expect(await upToDate(next, store)).toEqual(await truth(store));
  });
});
