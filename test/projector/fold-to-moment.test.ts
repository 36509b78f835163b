// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { EventStore, Query } from "eventstore-lite";
import type { Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName, type States } from "../../projections/all.ts";
import { dropReplacedUpTo } from "../../projections/contact-changes-to-rewind.ts";
import { countPeopleAt, type Contacts } from "../../projections/contact-state.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { createEraseHandler } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { foldLog } from "../harness/fold-log.ts";
import { foldTo, type FoldToOptions } from "../../src/projector/fold-to-moment.ts";
import { isDue, listPast, PAST_MAX, forgetSnapshots, unpackState } from "../../src/projector/past-snapshots.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { createMixedLife } from "../harness/in-process/write-busy-service-log.ts";
import { rebuildAll } from "./spoil-snapshots-and-rebuild.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { forget } from "../harness/in-process/operation-commands.ts";

/** Number of positions between snapshots of the past, small so that short logs have some. */
const PAST_EVERY = 40;

/**
 * Returns functions that continue the log of a busy service: one runs the service for some rounds of events, the other
 * erases a recipient with the real command.
 */
function livesOn(world: CommandHarness) {
  const { store } = world;
  const live = createMixedLife(store, world.append);
  const options = { erase: createEraseHandler(store.keyring), pastEvery: PAST_EVERY };

  return {
    /** Runs a service for some rounds; it saves snapshots when it stops. */
    async serve(rounds: number): Promise<void> {
      await using projector = await startProjector(store, options);
      await live(rounds);
      await projector.until((await store.head()).position);
    },
    async forgetSomebody(number: number): Promise<void> {
      const { states } = await foldLog(store, ["contacts"]);
      const people = [...states.contacts.people.values()].filter(({ username }) => username !== undefined);
      const person = people[number % Math.max(1, people.length)];
      if (person !== undefined)
        expect(await world.run(forget, person.username ?? "", "--yes")).toMatchObject({ code: 0 });
    },
  };
}

/** Replaces the content of a projection's snapshots by a wrong state, as a defect would. */
async function spoilAll(store: EventStore<Event>, name: ProjectionName, version?: number): Promise<void> {
  for (const entry of await store.snapshots.list("")) {
    if (entry.name !== name && !entry.name.startsWith(`past/${name}/`)) continue;
    const state = encodeState(projectionOf(name).initial());
    await store.snapshots.save(entry.name, { version: version ?? entry.version, position: entry.position, state });
  }
}

/** Compares a fold to a moment with a fold from the start. */
async function expectTruth(store: EventStore<Event>, names: readonly ProjectionName[], moment: FoldToOptions) {
  const found = await foldTo(store, names, moment);
  const { states: all, events: _, ...place } = await foldLog(store, names, moment);
  const states: Partial<States> = all;
  expect({ position: found.position, time: found.time }).toEqual(place);
  for (const name of names) {
    if (name !== "contacts") expect(encodeState(found.states[name])).toBe(encodeState(states[name]));
    // Compares contacts regardless of the order of their entries. Only the order of the Map `people` matters, because
    // runs follow it; it is compared below.
    else expect(found.states[name]).toEqual(states[name]!);
  }
  const [put, folded] = [(found.states as Partial<States>).contacts, states.contacts];
  expect(put && [...put.people.keys()]).toEqual(folded && [...folded.people.keys()]);
}

type Step = readonly [kind: "serve" | "ask" | "keep" | "forget" | "rebuild" | "version", number: number];

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.tuple(
    fc.constantFrom("serve", "serve", "ask", "keep", "keep", "forget", "rebuild", "version"),
    fc.nat(1_000_000),
  ) as fc.Arbitrary<Step>,
  { minLength: 3, maxLength: 12 },
);

const SPOILED = ["contacts", "clicks", "stats", "results"] as const satisfies ProjectionName[];

test("a fold from snapshots equals a fold from the start in any history", async () => {
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (life) => {
      await using world = await openCommands();
      const { store } = world;
      const { serve, forgetSomebody } = livesOn(world);
      const versions = PROJECTION_NAMES.map((name) => [name, projectionOf(name).version] as const);
      try {
        await serve(4);
        for (const [kind, number] of life) {
          const { position: head } = await store.head();
          const spoiled = SPOILED[number % SPOILED.length]!;
          const names = PROJECTION_NAMES.filter((_, index) => (number >> index) % 2 === 0);
          const to = number % (head + 1);
          if (kind === "serve") await serve(1 + (number % 3));
          if (kind === "ask") await expectTruth(store, names, { to });
          if (kind === "keep") await expectTruth(store, names, { to, keepSince: head, pastEvery: PAST_EVERY });
          if (kind === "forget") await forgetSomebody(number);
          if (kind === "rebuild") {
            await spoilAll(store, spoiled);
            await rebuildAll(store, {}, [spoiled]);
          }
          if (kind === "version") {
            await spoilAll(store, spoiled);
            Object.assign(projectionOf(spoiled), { version: projectionOf(spoiled).version + 1 });
          }
        }
        const { position: head, time } = await store.head();
        const now = (await foldTo(store, ["contacts"])).states.contacts;
        for (const to of [head, Math.floor(head / 2), 0]) {
          await expectTruth(store, PROJECTION_NAMES, { to });
          // A forgotten person is not counted at any moment. So the count at a moment can be computed from the present
          // contacts, without folding the earlier ones.
          const then = (await foldLog(store, ["contacts"], { to })).states.contacts;
          expect(countPeopleAt(now, to)).toBe(then.people.size);
        }
        await expectTruth(store, PROJECTION_NAMES, { until: new Date(Date.parse(time ?? "") - 600_000) });
        kept += (await store.snapshots.list("past/")).length;
      } finally {
        for (const [name, version] of versions) Object.assign(projectionOf(name), { version });
      }
    }),
    { numRuns: 12 },
  );
  expect(kept).toBeGreaterThan(100);
});

describe("snapshots of the past", () => {
  /** Wraps the log and records which parts of it folds read. */
  function watched(store: EventStore<Event>) {
    const folded: Query[] = [];
    const seen: EventStore<Event> = {
      ...store,
      readFolded(query = {}) {
        folded.push(query);
        return store.readFolded(query);
      },
    };
    return { store: seen, folded };
  }

  test("shorten later folds, are bounded in number, and are ignored after a rebuild", async () => {
    await using world = await openCommands();
    const { serve } = livesOn(world);
    await serve(60);
    const head = (await world.store.head()).position;
    const first = watched(world.store);
    await foldTo(first.store, ["clicks"], { to: head - 1, keepSince: head, pastEvery: 2 });
    expect(first.folded[0]?.from).toBe(1);
    const kept = await listPast(world.store, "clicks");
    expect(kept.length).toBeGreaterThan(PAST_MAX / 3);
    expect(kept.length).toBeLessThanOrEqual(PAST_MAX);
    const { position: before } = kept[Math.floor(kept.length / 2)]!;
    const second = watched(world.store);
    await foldTo(second.store, ["clicks"], { to: before + 1 });
    const along = { types: ["LinkClicked"], alongLog: true };
    expect(second.folded).toEqual([{ from: before + 1, to: before + 1, ...along }]);
    await rebuildAll(world.store, {}, ["clicks"]);
    const third = watched(world.store);
    await foldTo(third.store, ["clicks"], { to: before + 1 });
    expect(third.folded[0]?.from).toBe(1);
  });

  test("bound a read along the whole log, even for unchanged projections", async () => {
    await using world = await openCommands();
    const people = Array.from({ length: 3 * PAST_EVERY }, (_, number): NewEvent => {
      const recipient = { username: `person_${number}` };
      return addedOf(recipient);
    });
    await world.append(STREAMS.outreach, people);
    const to = people.length - 1;
    await foldTo(world.store, PROJECTION_NAMES, { to, keepSince: to, pastEvery: PAST_EVERY });
    expect(await listPast(world.store, "stats")).toEqual([]);
    const reader = watched(world.store);
    await foldTo(reader.store, PROJECTION_NAMES, { to });
    const alongLog = reader.folded.filter(({ types }) => types === undefined);
    expect(alongLog.map(({ from }) => from)).toEqual([2 * PAST_EVERY + 1]);
  });

  test("are removed when all snapshots are forgotten", async () => {
    await using world = await openCommands();
    const { serve } = livesOn(world);
    await serve(3);
    await serve(3);
    expect(await world.store.snapshots.list("past/")).not.toEqual([]);
    await forgetSnapshots(world.store);
    expect(await world.store.snapshots.list("past/")).toEqual([]);
  });

  test("for contacts serve moments with dropped changes by rewinding or folding", async () => {
    await using world = await openCommands();
    const rows = Array.from({ length: 60 }, (_, at) => addedOf({ id: `${at % 3}` }, { fields: { at: `${at}` } }));
    await world.append(STREAMS.outreach, rows);
    const stateAt = async (to: number, dropped = 0) => {
      const { contacts } = (await foldLog(world.store, ["contacts"], { to })).states;
      dropReplacedUpTo(contacts, dropped);
      return contacts;
    };
    const save = async (name: string, position: number, state: Contacts) => {
      const { version } = projectionOf("contacts");
      await world.store.snapshots.save(name, { version, position, state: encodeState(state) });
    };
    const live = await stateAt(60, 40);
    const now = { position: 60, isFolded: () => true, state: () => live as never };
    const { rewinds_to } = live;
    expect(rewinds_to).toBe(40);
    // Folds to this moment and checks the people. Returns the positions at which the fold started to read the log.
    const fieldsAt = async (to: number, options: FoldToOptions = {}) => {
      const reader = watched(world.store);
      const { people } = (await foldTo(reader.store, ["contacts"], { to, ...options })).states.contacts;
      const shown = (all: Contacts["people"]) => [...all].map(([key, { fields }]) => [key, fields]);
      expect(shown(people)).toEqual(shown((await stateAt(to)).people));
      return reader.folded.map(({ from }) => from);
    };
    expect(await fieldsAt(45, { now })).toEqual([]);
    expect(await fieldsAt(35, { now })).toEqual([1]);
    await save("past/contacts/30/30", 30, await stateAt(30, 11));
    await save("contacts", 60, live);
    expect(await fieldsAt(45)).toEqual([]);
    expect(await fieldsAt(35)).toEqual([31]);
    expect(await fieldsAt(35, { now })).toEqual([31]);
    expect(await fieldsAt(20, { now })).toEqual([]);
    expect(await fieldsAt(5, { now })).toEqual([1]);
    const moment = { position: 80, last: 39, every: PAST_EVERY };
    expect([isDue("contacts", live, moment), isDue("contacts", live, { ...moment, last: 40 })]).toEqual([true, false]);
    expect(isDue("contacts", await stateAt(60), { ...moment, last: 0 })).toBe(false);
  });

  test("for contacts from older versions are removed at a start", async () => {
    await using world = await openCommands();
    await livesOn(world).serve(2);
    const state = encodeState(projectionOf("contacts").initial());
    await world.store.snapshots.save("past/contacts/1/0", { version: 14, position: 1, state });
    expect(await listPast(world.store, "contacts")).toHaveLength(1);
    await livesOn(world).serve(1);
    expect(await listPast(world.store, "contacts")).toEqual([]);
    expect(await listPast(world.store, "stats")).not.toEqual([]);
  });

  test("are left by the saves of a service and used without reading the log", async () => {
    await using world = await openCommands();
    const { serve } = livesOn(world);
    for (let life = 0; life < 4; life++) await serve(2);
    const names = (await listPast(world.store, "clicks")).map(({ position }) => position);
    expect(names.length).toBeGreaterThanOrEqual(3);
    const head = (await world.store.head()).position;
    const reader = watched(world.store);
    await foldTo(reader.store, ["clicks"], { to: names[1] ?? head });
    expect(reader.folded).toEqual([]);
  });

  test("with a forgotten recipient are ignored, even if saved during the erasure", async () => {
    await using world = await openCommands();
    const { store } = world;
    const attemptedOf = (username: string, number: number): NewEvent => {
      const recipient = { id: `${number}`, username };
      const data = { attempt_id: `a${number}`, run_id: "r", recipient, text: "Hi", variant: "A", day: "2026-11-20" };
      return { type: "DirectMessageAttempted", data };
    };
    // So many events that the projector saves a snapshot of their fold.
    const others = Array.from({ length: 500 }, (_, number) => attemptedOf(`other_${number}`, 1_000 + number));
    await world.append(STREAMS.outreach, [attemptedOf("ann_builds", 1), ...others]);
    const { serve } = livesOn(world);
    await serve(4);
    await serve(4);
    const to = (await store.head()).position;
    const isShown = async (): Promise<boolean> => {
      const { states } = await foldTo(store, ["contacts", "run"], { to });
      return Bun.inspect(states, { depth: 9 }).includes("ann_builds");
    };
    expect(await isShown()).toBe(true);
    expect((await listPast(store, "run")).length).toBeGreaterThan(0);
    // Now the person is forgotten in the middle of a fold to a moment, after the fold has read all her events.
    await store.snapshots.remove(["run", ...(await listPast(store, "run")).map(({ name }) => name)]);
    let isForgotten = false;
    const meanwhile: EventStore<Event> = {
      ...store,
      // The snapshots that the erasure should remove stay, as after a crash.
      snapshots: { ...store.snapshots, remove: async () => {} },
      async *readFolded(query = {}) {
        for await (const batch of store.readFolded(query)) {
          yield batch;
          if (query.to !== to || isForgotten) continue;
          isForgotten = true;
          expect(await world.run(forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
        }
      },
    };
    expect(await listPast(store, "run")).toEqual([]);
    const asked = { to, keepSince: to, pastEvery: to };
    const { states } = await foldTo(meanwhile, ["run"], asked);
    expect(Bun.inspect(states, { depth: 9 })).toContain("ann_builds");
    expect((await listPast(store, "run")).map(({ position }) => position)).toEqual([to]);
    expect(await isShown()).toBe(false);
    for (const { name } of await store.snapshots.list("")) {
      const { state = "{}" } = (await store.snapshots.load(name)) ?? {};
      expect(encodeState(await unpackState(state))).not.toContain("ann_builds");
    }
    // A fold that begins after the erasure saves snapshots of the past again.
    await foldTo(store, ["run"], { to, keepSince: (await store.head()).position, pastEvery: PAST_EVERY });
    expect((await listPast(store, "run")).length).toBeGreaterThan(0);
    expect(await isShown()).toBe(false);
  });
});
