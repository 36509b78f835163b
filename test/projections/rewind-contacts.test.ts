// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/catalog.ts";
import { contacts, type Contact, type Contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import { peopleAt, rewindContacts, type People } from "../../projections/rewind-contacts.ts";
import { decodeState, encodeState } from "../../projections/snapshot.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given as givenFor, testLog } from "../harness/memory/events.ts";
import { histories } from "./history.ts";

function rewound(now: Contacts, position: number): Contacts {
  const steps = rewindContacts(now, position);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function foldedUpTo(events: readonly Recorded[], position: number): Contacts {
  const before = events.filter((event) => event.position <= position);
  return fold(contacts, contacts.initial(), before);
}

/** The order of people is that in which a run takes them. */
function expectSame(state: Contacts, folded: Contacts): void {
  expect(state).toEqual(folded);
  expect([...state.people.keys()]).toEqual([...folded.people.keys()]);
}

/** A list shows nothing of their positions. */
function expectListed(people: People, folded: Contacts): void {
  const shown = (contact: Contact): unknown => ({ ...contact, positions: [], reads: undefined, replaced: undefined });
  const wanted = new Map([...folded.people].map(([key, contact]) => [key, shown(contact)]));
  expect(new Map([...people].map(([key, contact]) => [key, shown(contact)]))).toEqual(wanted);
  expect(people.size).toBe(wanted.size);
  for (const [key, contact] of wanted) expect(shown(people.get(key)!)).toEqual(contact);
}

test("whatever happened, recipients are put back to what a fold up to each position gives", () => {
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
        if (folded.people.size > 1 && folded.merged.length < now.merged.length) seen.absorbed++;
      }
      expect(now).toEqual(foldedUpTo(events, Infinity));
      seen.merges += now.merged.length;
      seen.former += now.replaced.filter(({ former }) => former !== undefined).length;
      seen.refused += now.replaced.filter(({ refused }) => refused !== undefined).length;
    }),
    { numRuns: 200 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
});

test("what happens after a state was put back leaves that one as it is", () => {
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
    { numRuns: 150 },
  );
});

test("events that are folded between two steps change nothing of the moment", () => {
  const log = testLog();
  const add = (recipient: { id?: string; username?: string }): unknown =>
    log.add("RecipientAdded", { recipient, basis: "opt_in", fields: { city: "Rome" }, source: "list" });
  for (let number = 0; number < 3_000; number++) add({ username: `person${number}` });
  for (let number = 0; number < 3_000; number += 10) add({ id: `${number}` });
  const position = log.events.length;
  const now = foldedUpTo(log.events, Infinity);
  const folded = foldedUpTo(log.events, Infinity);
  const steps = rewindContacts(now, position);
  let taken = 0;
  for (let number = 0; ; number += 10) {
    const step = steps.next();
    if (step.done === true) {
      expectSame(step.value, folded);
      break;
    }
    taken++;
    const before = log.events.length;
    // An entry of each end of the list turns out to be another one; a third loses its handle.
    add({ id: `${number}`, username: `person${number}` });
    add({ id: `${2_990 - number}`, username: `person${2_990 - number}` });
    add({ id: `9${number}`, username: `person${number + 1}` });
    fold(contacts, now, log.events.slice(before));
  }
  expect(taken).toBeGreaterThan(10);
});

test("hashes of suppressed recipients are copied a few at a step, also while more are added", () => {
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
      expect(step.value.hashes).toEqual(new Map(hashes.slice(0, 15_000)));
      break;
    }
    now.hashes.set(`later ${added}`, 30_000 + added);
  }
});

test("an entry is put back at its place before one that has absorbed an older entry", () => {
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

test("before the first event there was no recipient", () => {
  const added: NewEvent = {
    type: "RecipientAdded",
    data: { recipient: { username: "ann" }, basis: "opt_in", fields: { city: "Rome" }, source: "list" },
  };
  expect(rewound(givenFor(contacts, [added]), 0)).toEqual(contacts.initial());
});
