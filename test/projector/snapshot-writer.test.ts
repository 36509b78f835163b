// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore, Snapshot } from "eventstore-lite";
import type { Event } from "../../events/event-types-and-codec.ts";
import type { ProjectionName } from "../../projections/all.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { unpackState } from "../../src/projector/past-snapshots.ts";
import { writeMixedLog } from "../bench/write-mixed-log.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { open, textsOf, truth } from "./spoil-snapshots-and-rebuild.ts";

/** Number of recipients. They are so many that the snapshot of contacts is encoded in a dozen pieces. */
const PEOPLE = 3_000;

const EVENTS = 12_000;

/** The events of a busy service, one at a time. */
async function* mixedEvents(): AsyncGenerator<{ readonly stream: string; readonly event: Event }> {
  const file = newLogFile();
  await writeMixedLog(file, EVENTS, { people: PEOPLE });
  await using source = await open(file);
  for await (const { id, type, data, meta, stream } of source.read()) {
    yield { stream, event: { id, type, data, meta } as Event };
  }
}

/** Appends the events in small batches, so that the projector is never far behind. Returns the last position. */
async function appendAll(store: EventStore<Event>): Promise<number> {
  let appends: Promise<{ readonly last: number }>[] = [];
  let last = 0;
  for await (const { stream, event } of mixedEvents()) {
    appends.push(store.append(stream, [event]));
    if (appends.length < 64) continue;
    last = (await Promise.all(appends)).at(-1)?.last ?? last;
    appends = [];
  }
  return (await Promise.all(appends)).at(-1)?.last ?? last;
}

test("a snapshot encoded while events arrive holds the state of its position", async () => {
  await using store = await open(newLogFile());
  const saved: (Snapshot & { readonly name: ProjectionName; readonly passed: number })[] = [];
  const save: typeof store.snapshots.save = (name, snapshot, alsoAs) => {
    saved.push({ ...snapshot, name: name as ProjectionName, passed: projector.position - snapshot.position });
    return store.snapshots.save(name, snapshot, alsoAs);
  };
  await using projector = await startProjector({ ...store, snapshots: { ...store.snapshots, save } }, { sliceMs: 0 });
  const last = await appendAll(store);
  await projector.until(last);
  expect(textsOf(projector.state)).toEqual(await truth(store));
  for (const { name, position, state } of saved) {
    expect(encodeState(await unpackState(state))).toBe((await truth(store, position))[name] ?? "");
  }
  // While the contacts were saved, other events were folded.
  expect(saved.some(({ name, passed }) => name === "contacts" && passed > 0)).toBe(true);
});

test("an interrupted save leaves no snapshot", async () => {
  await using store = await open(newLogFile());
  const reached = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  // When all pieces of the contacts are encoded, the save waits and then never writes to the store, as if it were
  // interrupted.
  const save: typeof store.snapshots.save = async (name) => {
    if (name !== "contacts") return;
    reached.resolve();
    await released;
  };
  await using projector = await startProjector({ ...store, snapshots: { ...store.snapshots, save } }, { sliceMs: 0 });
  // Lets the waiting save end before the projector is disposed of, because its disposal waits for the save.
  using _ = { [Symbol.dispose]: release };
  const last = await appendAll(store);
  await reached.promise;
  expect(await store.snapshots.load("contacts")).toBeUndefined();
  await using next = await startProjector(store, { saves: () => false });
  await projector.until(last);
  expect(textsOf(next.state)).toEqual(await truth(store, next.position));
});
