// These tests run parts of the service inside the test process.
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, type States } from "../../projections/all.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { createEraseHandler } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { createPastStates, type PastStates } from "../../src/projector/past-states.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { foldLog } from "../harness/fold-log.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { forget } from "../harness/in-process/operation-commands.ts";

let world: CommandHarness;
let projector: Projector;
let stop: AbortController;
/** Number of reads of the log for folds. */
let folds: number;
/** Hook that is called before each read of the log for a fold. */
let beforeFold: () => Promise<void>;
/** Hook that is called after each complete read of the log for a fold. */
let afterFold: () => Promise<void>;

function person(username: string): NewEvent {
  return addedOf({ username }, { name: "Ann" });
}

beforeEach(async () => {
  world = await openCommands();
  await world.append(STREAMS.outreach, ["ann_builds", "bea", "cid", "dee", "eve", "fay"].map(person));
  projector = await startProjector(world.store, { erase: createEraseHandler(world.store.keyring) });
  stop = new AbortController();
  folds = 0;
  beforeFold = async () => {};
  afterFold = async () => {};
});
afterEach(async () => {
  stop.abort();
  await projector[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

/**
 * Opens past states. If `folding`, none of them can be derived from the current states, so each needs a fold, as after
 * a start with an old snapshot.
 */
function open(patienceMs?: number, folding = true): PastStates {
  const store: EventStore<Event> = {
    ...world.store,
    async *readFolded(query = {}) {
      folds++;
      await beforeFold();
      yield* world.store.readFolded(query);
      await afterFold();
    },
  };
  const patience = patienceMs === undefined ? {} : { patienceMs };
  const now = folding ? (Object.create(projector, { isFolded: { value: () => false } }) as Projector) : projector;
  return createPastStates({ store, projector: now, stopping: stop.signal, ...patience });
}

function namesOf(states: Pick<States, "contacts"> | undefined): readonly (string | undefined)[] {
  return [...(states?.contacts.people.values() ?? [])].map(({ username }) => username);
}

test("past states are those of the moment, each folded once for all callers", async () => {
  const past = open();
  const [one, other] = await Promise.all([past.at(3, ["contacts"]), past.at(3, ["contacts"])]);
  expect(other?.contacts).toBe(one!.contacts);
  expect(folds).toBe(1);
  const all = await past.at(3, PROJECTION_NAMES);
  expect(all?.contacts).toBe(one!.contacts);
  expect(folds).toBe(2);
  expect(all).toEqual((await foldLog(world.store, PROJECTION_NAMES, { to: 3 })).states);
  await past.at(3, ["stats", "contacts"]);
  expect(folds).toBe(2);
});

test("the states of the two last requested moments stay in memory", async () => {
  const past = open();
  for (const position of [1, 2, 1, 3, 1]) await past.at(position, ["contacts"]);
  expect(folds).toBe(3);
  await past.at(2, ["contacts"]);
  expect(folds).toBe(4);
});

test("moments are folded one at a time, and a fifth waiting request is refused", async () => {
  let under = 0;
  let most = 0;
  beforeFold = async () => {
    most = Math.max(most, ++under);
  };
  afterFold = async () => {
    // If other folds were allowed at the same time, they would begin during these turns of the event loop.
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    under--;
  };
  const past = open();
  const asked = [1, 2, 3, 4].map((position) => past.at(position, ["contacts"]));
  expect(await past.at(5, ["contacts"])).toBeUndefined();
  expect((await Promise.all(asked)).map((states) => namesOf(states).length)).toEqual([1, 2, 3, 4]);
  expect(most).toBe(1);
  expect(namesOf(await past.at(5, ["contacts"]))).toHaveLength(5);
});

test("a fold that outlasts the caller's patience serves a later request", async () => {
  const gate = Promise.withResolvers<void>();
  beforeFold = () => gate.promise;
  const past = open(1);
  expect(await past.at(2, ["contacts"])).toBeUndefined();
  gate.resolve();
  let states = await past.at(2, ["contacts"]);
  while (states === undefined) states = await past.at(2, ["contacts"]);
  expect(namesOf(states)).toEqual(["ann_builds", "bea"]);
  expect(folds).toBe(1);
});

test("an erasure applies at once to past states in memory or being folded", async () => {
  const past = open();
  expect(namesOf(await past.at(2, ["contacts"]))).toEqual(["ann_builds", "bea"]);
  afterFold = async () => {
    afterFold = async () => {};
    expect(await world.run(forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
    await projector.until((await world.store.head()).position);
  };
  expect(namesOf(await past.at(3, ["contacts"]))).toEqual(["bea", "cid"]);
  expect(namesOf(await past.at(2, ["contacts"]))).toEqual(["bea"]);
});

test("past contacts are rewound from the current ones without a fold, even after an erasure", async () => {
  const past = open(undefined, false);
  for (const position of [0, 3, 6]) {
    const states = await past.at(position, ["contacts"]);
    expect(states).toEqual((await foldLog(world.store, ["contacts"], { to: position })).states);
  }
  const held = await past.at(6, ["contacts"]);
  await world.append(STREAMS.outreach, [addedOf({ username: "cid" }, { name: "Carl", fields: { city: "Rome" } })]);
  await projector.until((await world.store.head()).position);
  expect(projector.state("contacts").people.get("@cid")).toMatchObject({ name: "Carl" });
  expect(held?.contacts.people.get("@cid")).toMatchObject({ name: "Ann" });
  expect((await past.at(3, ["contacts"]))?.contacts.people.get("@cid")).toMatchObject({ name: "Ann" });
  expect(folds).toBe(0);
  expect(await world.run(forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
  await projector.until((await world.store.head()).position);
  expect(namesOf(await past.at(3, ["contacts"]))).toEqual(["bea", "cid"]);
  expect(folds).toBe(0);
});

test("the next request retries a failed fold, and a stop ends a running one", async () => {
  const past = open();
  beforeFold = () => Promise.reject(new Error("a broken disk"));
  expect(await past.at(2, ["contacts"]).catch((fault: unknown) => fault)).toEqual(new Error("a broken disk"));
  beforeFold = async () => {};
  expect(namesOf(await past.at(2, ["contacts"]))).toHaveLength(2);
  beforeFold = async () => stop.abort();
  expect(await past.at(4, ["contacts"]).catch((fault: unknown) => fault)).toMatchObject({ kind: "closed" });
});
