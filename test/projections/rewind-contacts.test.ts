// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { dropReplacedUpTo, REPLACED_MAX } from "../../projections/contact-changes-to-rewind.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import {
  canRewindContacts,
  contactWithIdAt,
  peopleAt,
  rewindContacts,
  type People,
} from "../../projections/rewind-contacts.ts";
import { decodeState, encodeState } from "../../projections/encode-state.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given as givenFor, testLog } from "../harness/in-process/number-and-fold-events.ts";
import { histories } from "./generate-history.ts";
import { countCases, countSituations, isWhole } from "../harness/case-count.ts";

function rewound(now: Contacts, position: number): Contacts {
  const steps = rewindContacts(now, position);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value!;
  }
}

function foldedUpTo(events: readonly Recorded[], position: number): Contacts {
  const before = events.filter((event) => event.position <= position);
  return fold(contacts, contacts.initial(), before);
}

/** Expects equal states with the recipients in the same order, because runs follow that order. */
function expectSame(state: Contacts, folded: Contacts): void {
  expect(state).toEqual(folded);
  expect([...state.people.keys()]).toEqual([...folded.people.keys()]);
}

/**
 * Expects the same recipients in both. Of the positions of a recipient's events, only the first is compared, because a
 * list shows no other.
 */
function expectListed(people: People, folded: Contacts): void {
  const shown = (contact: Contact): unknown => ({
    ...contact,
    positions: contact.positions.slice(0, 1),
    reads: undefined,
    replaced: undefined,
  });
  const wanted = new Map([...folded.people].map(([key, contact]) => [key, shown(contact)]));
  expect(new Map([...people].map(([key, contact]) => [key, shown(contact)]))).toEqual(wanted);
  expect(people.size).toBe(wanted.size);
  for (const [key, contact] of wanted) expect(shown(people.get(key)!)).toEqual(contact);
}

test("in any history, rewinding contacts to a position equals a fold up to it", () => {
  const seen = { merges: 0, former: 0, refused: 0, absorbed: 0 };
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const now = foldedUpTo(events, Infinity);
      const stored = decodeState(encodeState(now)) as Contacts;
      for (const { position } of events) {
        const folded = foldedUpTo(events, position);
        expectSame(rewound(now, position), folded);
        expectSame(rewound(stored, position), folded);
        expectListed(
          peopleAt(() => now, position),
          folded,
        );
        const ids = new Set([...now.people.values()].map(({ id = "" }) => id));
        for (const id of ids) expect(contactWithIdAt(now, id, position)).toEqual(findContact(folded, { id }));
        if (folded.people.size > 1 && folded.merged.length < now.merged.length) seen.absorbed++;
      }
      expect(now).toEqual(foldedUpTo(events, Infinity));
      seen.merges += now.merged.length;
      seen.former += now.replaced.filter(({ former }) => former !== undefined).length;
      seen.refused += now.replaced.filter(({ refused }) => refused !== undefined).length;
    }),
    { numRuns: countCases(200) },
  );
  // An ordinary test run plays only some of the histories, which may lack some of these rare situations.
  if (!isWhole) return;
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
});

test("later events do not change a rewound state", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const half = Math.ceil(events.length / 2);
      const now = foldedUpTo(events.slice(0, half), Infinity);
      const position = events[half >> 1]?.position ?? 0;
      const state = rewound(now, position);
      fold(contacts, now, events.slice(half));
      expectSame(state, foldedUpTo(events, position));
      const next = events.filter((event) => event.position > position);
      expectSame(fold(contacts, state, next), foldedUpTo(events, Infinity));
    }),
    { numRuns: countCases(150) },
  );
});

test("events folded between two rewind steps do not change the result", () => {
  const log = testLog();
  const add = (recipient: { id?: string; username?: string }): unknown =>
    log.add("RecipientAdded", { recipient, basis: "opt_in", fields: { city: "Rome" }, source: "list" });
  for (let number = 0; number < 3_000; number++) {
    add({ username: `person${number}`, ...(number % 10 === 5 && { id: `7${number}` }) });
  }
  for (let number = 0; number < 3_000; number += 10) add({ id: `${number}` });
  const position = log.events.length;
  const now = foldedUpTo(log.events, Infinity);
  const folded = foldedUpTo(log.events, Infinity);
  const steps = rewindContacts(now, position);
  let taken = 0;
  for (let number = 0; ; number += 10) {
    const step = steps.next();
    if (step.done === true) {
      expectSame(step.value!, folded);
      break;
    }
    taken++;
    const before = log.events.length;
    // A person near each end of the list gets an id, so their entry merges with that of the id. A third person, whose
    // id is known, loses the handle to a person with another id.
    add({ id: `${number}`, username: `person${number}` });
    add({ id: `${2_990 - number}`, username: `person${2_990 - number}` });
    add({ id: `9${number}`, username: `person${number + 5}` });
    fold(contacts, now, log.events.slice(before));
  }
  expect(taken).toBeGreaterThan(10);
  const former = [...now.people.values()].filter(({ id = "", username }) => id.endsWith("5") && username === undefined);
  expect(former).toHaveLength(taken);
});

test("suppression hashes are copied in bounded steps, even while more are added", () => {
  let read = 0;
  class CountedMap extends Map<string, number> {
    override *[Symbol.iterator](): MapIterator<[string, number]> {
      for (const entry of super.entries()) {
        read++;
        yield entry;
      }
      return undefined;
    }
  }
  const hashes = Array.from({ length: 20_000 }, (_, at): [string, number] => [`hash ${at}`, at + 1]);
  const now = { ...contacts.initial(), hashes: new CountedMap(hashes) };
  const steps = rewindContacts(now, 15_000);
  for (let added = 0; ; added++) {
    const before = read;
    const step = steps.next();
    expect(read - before).toBeLessThanOrEqual(1_024);
    if (step.done === true) {
      expect(step.value?.hashes).toEqual(new Map(hashes.slice(0, 15_000)));
      break;
    }
    now.hashes.set(`later ${added}`, 30_000 + added);
  }
});

test("a merged contact is restored at its original place in the order", () => {
  const log = testLog();
  for (const recipient of [
    { username: "ann" },
    { username: "bea" },
    { id: "1" },
    { id: "1", username: "ann" },
    { id: "2" },
    { id: "2", username: "bea" },
  ]) {
    log.add("RecipientAdded", { recipient, basis: "opt_in", fields: {}, source: "list" });
  }
  const state = rewound(foldedUpTo(log.events, Infinity), 5);
  expect([...state.people.keys()]).toEqual(["@bea", "1", "2"]);
  expectSame(state, foldedUpTo(log.events, 5));
});

test("rewinding to before the first event gives the initial state", () => {
  const added: NewEvent = {
    type: "RecipientAdded",
    data: { recipient: { username: "ann" }, basis: "opt_in", fields: { city: "Rome" }, source: "list" },
  };
  expect(rewound(givenFor(contacts, [added]), 0)).toEqual(contacts.initial());
});

function changesAfter({ changed: { full, open } }: Contacts, position: number) {
  const all = [...full.values(), open].flatMap(({ at, keys }) => at.map((one, index) => [one, keys[index]!] as const));
  const later = all.filter(([at]) => at > position);
  return { at: later.map(([at]) => at), keys: later.map(([, key]) => key) };
}

/** Removes the changes of contacts up to a position. Of two compared states, one may have them and the other not. */
function withoutChangesUpTo(state: Contacts, position: number): Contacts {
  const withoutOld = (contact: Contact): Contact => {
    const replaced = (contact.replaced ?? []).filter(({ at }) => at > position);
    const { replaced: _, ...entry } = contact;
    const left = replaced.map(({ absorbed, ...one }) =>
      absorbed === undefined ? one : { ...one, absorbed: [absorbed[0], withoutOld(absorbed[1])] as const },
    );
    return left.length === 0 ? entry : { ...entry, replaced: left };
  };
  return {
    ...state,
    people: new Map([...state.people].map(([key, contact]) => [key, withoutOld(contact)])),
    changed: { full: new Map(), open: changesAfter(state, position) },
    replaced: state.replaced.filter(({ at }) => at > position),
    rewinds_to: position,
  };
}

test("after the oldest changes are dropped, only later positions can be rewound to", () => {
  let refused = 0;
  fc.assert(
    fc.property(histories(), fc.nat(40), ({ events }, dropped) => {
      const half = events.length >> 1;
      const now = foldedUpTo(events.slice(0, half), Infinity);
      dropReplacedUpTo(now, Math.min(dropped, events[half - 1]?.position ?? 0));
      const stored = decodeState(encodeState(now)) as Contacts;
      for (const state of [now, stored]) fold(contacts, state, events.slice(half));
      const { rewinds_to } = now;
      for (const { position } of events) {
        expect(canRewindContacts(now, position)).toBe(position >= rewinds_to);
        if (position < rewinds_to) {
          refused++;
          expect(rewindContacts(now, position).next()).toEqual({ done: true, value: undefined });
          continue;
        }
        const folded = withoutChangesUpTo(foldedUpTo(events, position), rewinds_to);
        for (const state of [now, stored]) expectSame(withoutChangesUpTo(rewound(state, position), rewinds_to), folded);
      }
    }),
    { numRuns: countCases(150) },
  );
  expect(refused).toBeGreaterThan(countSituations(50));
});

test("a rewind gives no state if needed changes are dropped during it", () => {
  const log = testLog();
  const add = (city: string): unknown =>
    log.add("RecipientAdded", { recipient: { id: "1" }, basis: "opt_in", fields: { city }, source: "list" });
  for (const city of ["Rome", "Oslo", "Bern"]) add(city);
  const now = foldedUpTo(log.events, Infinity);
  const steps = rewindContacts(now, 1);
  expect(steps.next().done).toBe(false);
  dropReplacedUpTo(now, 2);
  for (;;) {
    const step = steps.next();
    if (step.done !== true) continue;
    expect(step.value).toBeUndefined();
    break;
  }
  expect(rewound(now, 2).people.get("1")).toMatchObject({ fields: { city: "Oslo" } });
});

test("nightly imports that change every row keep a bounded number of changes", () => {
  const PEOPLE = 1_000;
  const state = contacts.initial();
  const row = { basis: "opt_in", source: "list" } as const;
  const held = (): number => state.people.values().reduce((sum, { replaced = [] }) => sum + replaced.length, 0);
  let position = 0;
  const importAll = (night: number): void => {
    for (let id = 0; id < PEOPLE; id++) {
      const data = { ...row, recipient: { id: `${id}` }, fields: { score: `${night}` } };
      const event = { type: "RecipientAdded", data, position: ++position, time: "2026-11-20T10:00:00.000Z" };
      contacts.evolve(state, event as unknown as Recorded);
    }
  };
  const nights = Math.ceil((REPLACED_MAX * 1.2) / PEOPLE);
  for (let night = 0; night < nights; night++) importAll(night);
  expect(held()).toBeGreaterThan(REPLACED_MAX * 0.98);
  expect(held()).toBeLessThan(REPLACED_MAX * 1.01);
  expect(changesAfter(state, 0).at.length).toBe(held());
  expect(state.rewinds_to).toBeGreaterThan(0);
  expect(rewound(state, position - PEOPLE).people.get("7")?.fields).not.toEqual(state.people.get("7")!.fields);
});
