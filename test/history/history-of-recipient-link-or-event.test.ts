// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { Recipient } from "../../events/outreach.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import {
  historyOfEvent,
  historyOfLink,
  historyOfRecipient,
} from "../../src/history/history-of-recipient-link-or-event.ts";
import type { Reading } from "../../src/history/find-event.ts";
import { findNamed } from "../../src/recipients/resolve-recipient.ts";
import { outcomesIn } from "../harness/in-process/dispatch-outcome-events.ts";
import { histories } from "../projections/generate-history.ts";
import { logInMemory } from "./log-in-memory.ts";
import { countCases, countSituations } from "../harness/case-count.ts";

const CASES = { numRuns: countCases(1_000) };
function readingOf(events: readonly Recorded[], to = events.length): Reading {
  return { store: logInMemory(events), to, onProgress() {} };
}

/** Returns a function that finds a recipient's contact by a text that an operator types: a handle or an id. */
const named = (subject: string) => (people: Contacts) => findNamed(people, subject);

/** False for an erased recipient, whose data is no longer in the event. */
const isSomebody = ({ id, username }: Recipient): boolean => id !== undefined || username !== undefined;

/**
 * Returns a predicate. It is true for an event in which a recipient has a handle that another recipient also had at
 * some time in this log.
 */
function handOnIn(events: readonly Recorded[]): (event: Recorded) => boolean {
  const holders = new Map<string, Set<string>>();
  const handleOf = ({ data }: Recorded): string =>
    "recipient" in data ? (data.recipient.username ?? "").toLowerCase() : "";
  for (const event of events) {
    if (!("recipient" in event.data) || event.data.recipient.id === undefined) continue;
    const ids = holders.get(handleOf(event)) ?? new Set();
    holders.set(handleOf(event), ids.add(event.data.recipient.id));
  }
  return (event) => handleOf(event) !== "" && (holders.get(handleOf(event))?.size ?? 0) > 1;
}

/** Types of events about the progress of a run. Only the history of the whole run contains them. */
const COURSE = ["RunPaused", "InboxRead", "SourceRead"];

const at = (events: readonly Recorded[], positions: readonly number[]): Recorded[] =>
  positions.map((position) => events[position - 1] as Recorded);

/**
 * Removes from a contact what depends on other recipients: the count of messages accepted before a refusal, and
 * `replaced`, which contains such counts.
 */
function withoutCount(person: Contact) {
  return { ...person, wasRefused: person.refused_after !== undefined, refused_after: undefined, replaced: undefined };
}

describe("the history of a recipient", () => {
  test("contains every event about the recipient and shares none with other histories", async () => {
    const seen = { people: 0, events: 0 };
    await fc.assert(
      fc.asyncProperty(histories(), fc.nat(150), async ({ events }, cut) => {
        const to = Math.min(cut, events.length);
        const state = fold(contacts, contacts.initial(), events.slice(0, to));
        const told: number[] = [];
        for (const { id, username } of state.people.values()) {
          const history = await historyOfRecipient(readingOf(events, to), named(id ?? username ?? ""));
          told.push(...(history?.positions ?? []));
        }
        const codes = new Set<string>();
        const about = events.slice(0, to).filter((event) => {
          if (event.type === "DirectMessageAttempted")
            for (const { code } of event.data.personal_links ?? []) codes.add(code);
          // The history of a recipient contains clicks on their own links, once a message with the link was sent, and
          // conversions after such clicks.
          if (event.type === "PersonalLinkClicked") return codes.has(event.data.code);
          if (event.type === "ConversionRecorded" || event.type === "ConversionReversed")
            return codes.has(event.data.code ?? "");
          return "recipient" in event.data && isSomebody(event.data.recipient);
        });
        expect(told.sort((a, b) => a - b)).toEqual(about.map(({ position }) => position));
        seen.people += state.people.size;
        seen.events += told.length;
      }),
      CASES,
    );
    expect(seen.people).toBeGreaterThan(countSituations(1_000));
    expect(seen.events).toBeGreaterThan(countSituations(5_000));
  });

  test("gives the same contact when it is folded alone", async () => {
    let renamed = 0;
    await fc.assert(
      fc.asyncProperty(histories(), async ({ events }) => {
        const state = fold(contacts, contacts.initial(), events);
        const isShared = handOnIn(events);
        for (const person of state.people.values()) {
          const { positions = [] } =
            (await historyOfRecipient(readingOf(events), named(person.id ?? person.username ?? ""))) ?? {};
          const own = at(events, positions);
          const alone = fold(contacts, contacts.initial(), own);
          // If the handle belonged to another recipient for a time, that time is in the other one's history. So the
          // recipient's own events alone do not give the same contact.
          if (!own.some((event) => isShared(event))) {
            expect([...alone.people.values()].map(withoutCount)).toEqual([withoutCount(person)]);
            if (alone.handles.size + alone.former.size > 1) renamed++;
          }
          const ids = new Set(own.flatMap(({ data }) => ("recipient" in data ? (data.recipient.id ?? []) : [])));
          expect([...ids]).toEqual(person.id === undefined ? [] : [person.id]);
        }
      }),
      CASES,
    );
    // Some of the recipients must have changed their handle, so that the test covers that.
    expect(renamed).toBeGreaterThan(countSituations(50));
  });
});

test("the history of a link has exactly its clicks and their dispatches", async () => {
  let outcomes = 0;
  await fc.assert(
    fc.asyncProperty(histories(), fc.nat(150), async ({ events }, cut) => {
      const to = Math.min(cut, events.length);
      for (const code of ["a", "b", "c"]) {
        const history = await historyOfLink(readingOf(events, to), `go.example/${code}`);
        const expected = ofLink(events.slice(0, to), code);
        expect(history?.positions ?? []).toEqual(expected);
        outcomes += expected.length;
      }
    }),
    CASES,
  );
  expect(outcomes).toBeGreaterThan(countSituations(3_000));
});

function ofLink(events: readonly Recorded[], code: string): number[] {
  const clicks = events.filter((event) => event.type === "LinkClicked" && event.data.short_code === code);
  return familyOf(
    events,
    clicks.map(({ id }) => id),
  );
}

/** Returns the positions of all events about these ids. */
function familyOf(events: readonly Recorded[], ids: readonly string[]): number[] {
  return events
    .filter((event) => subjectsOf(events, event).some((id) => ids.includes(id)))
    .map(({ position }) => position);
}

/**
 * Returns the id of an event and the ids of the events that it is about, also through retries. A dispatch of an event
 * to a webhook is about that event alone.
 */
function subjectsOf(events: readonly Recorded[], event: Recorded): readonly string[] {
  if ("event_id" in event.data) return [event.data.event_id, event.id];
  const sources = outcomesIn([event]).map(({ data: { source, channel } }) => {
    const [requesting] = at(events, [source]);
    const isRetry = requesting?.type === "DispatchRetryRequested" && requesting.data.channel === channel;
    return isRetry ? requesting.data.event_id : (requesting?.id ?? "");
  });
  return [...sources, event.id];
}

test("all events of a dispatch have the same history", async () => {
  let families = 0;
  await fc.assert(
    fc.asyncProperty(histories(60), async ({ events }) => {
      const reading = readingOf(events);
      for (const asked of events) {
        const family = familyOf(events, subjectsOf(events, asked));
        if ("run_id" in asked.data || family.length < 2) continue;
        expect((await historyOfEvent(reading, asked.id))?.positions).toEqual(family);
        families++;
      }
    }),
    CASES,
  );
  expect(families).toBeGreaterThan(countSituations(1_000));
});

test("the history of a message event has its message and the bounds of its run", async () => {
  let messages = 0;
  await fc.assert(
    fc.asyncProperty(histories(60), async ({ events }) => {
      for (const asked of events) {
        if (!("run_id" in asked.data)) continue;
        const { run_id } = asked.data;
        const attempt = "attempt_id" in asked.data ? asked.data.attempt_id : undefined;
        const isOfPerson = "recipient" in asked.data;
        const belongs = ({ position, type, data }: Recorded): boolean =>
          "run_id" in data &&
          data.run_id === run_id &&
          (!isOfPerson ||
            (!("recipient" in data) && !COURSE.includes(type)) ||
            position === asked.position ||
            ("attempt_id" in data && data.attempt_id === attempt));
        // If the event that asks for the run or message is itself dispatched to a webhook, the events about that
        // dispatch belong to the history too.
        const delivered = familyOf(events, [asked.id]);
        const family = events
          .filter((event) => belongs(event) || delivered.includes(event.position))
          .map(({ position }) => position);
        expect((await historyOfEvent(readingOf(events), asked.id))?.positions).toEqual(family);
        if (attempt !== undefined) messages++;
      }
    }),
    CASES,
  );
  expect(messages).toBeGreaterThan(countSituations(300));
});
