// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fold } from "../../projections/projection.ts";
import { referrers } from "../../projections/referrers.ts";
import { clicksOfVariant, variants, type VariantResults } from "../../projections/variants.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { histories } from "./history.ts";
import { given } from "../harness/memory/events.ts";

const RUN = { run_id: "r" };
const ANN = { id: "101", username: "Ann" };
const BEA = { id: "102", username: "bea" };

// `given` records the first fact at 10:00:01 and every other a second later.
const BEFORE = "2026-11-20T10:00:00.500Z";
const AFTER = "2026-11-20T10:30:00.000Z";

interface Intended {
  readonly recipient?: typeof ANN;
  readonly variant?: string;
  readonly template?: string;
  readonly links?: string[];
}

function attempted(attempt_id: string, intended: Intended = {}): NewEvent {
  const { recipient = ANN, variant = "A", template = "aaaa", links = [] } = intended;
  const data = { attempt_id, ...RUN, recipient, text: "Hi", variant, template, links, day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(attempt_id: string, recipient = ANN): NewEvent {
  const data = { attempt_id, ...RUN, recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

function failed(attempt_id: string, recipient = ANN): NewEvent {
  const outcome = { reason: "not_delivered", detail: "", frees_quota: false, retry: false } as const;
  return { type: "DirectMessageFailed", data: { attempt_id, ...RUN, recipient, ...outcome } };
}

function inDoubt(attempt_id: string, recipient = ANN): NewEvent {
  return { type: "DirectMessageInDoubt", data: { attempt_id, ...RUN, recipient, detail: "time-out" } };
}

function received(recipient: { id?: string; username?: string }, received_at = AFTER): NewEvent {
  return { type: "DirectMessageReceived", data: { recipient, message_id: "m2", received_at } };
}

function optedOut(recipient: { id?: string; username?: string }): NewEvent {
  return { type: "RecipientSuppressed", data: { recipient, reason: "opt_out" } };
}

function results(newEvents: readonly NewEvent[]): VariantResults[] {
  return given(variants, newEvents).groups;
}

const NONE = { attempted: 0, sent: 0, failed: 0, in_doubt: 0, replied: 0, opted_out: 0 };

test("the same letter of two templates is counted apart, and messages without a template apart from both", () => {
  const old: NewEvent = {
    type: "DirectMessageAttempted",
    data: { attempt_id: "0", ...RUN, recipient: ANN, text: "Hi", variant: "A", day: "2026-11-19" },
  };
  const newEvents = [old, failed("0"), attempted("1"), sent("1"), attempted("2", { recipient: BEA, template: "bbbb" })];
  expect(results([...newEvents, attempted("3", { recipient: BEA, variant: "B" })])).toEqual([
    { ...NONE, template: "", variant: "A", attempted: 1, failed: 1 },
    { ...NONE, template: "aaaa", variant: "A", attempted: 1, sent: 1 },
    { ...NONE, template: "bbbb", variant: "A", attempted: 1 },
    { ...NONE, template: "aaaa", variant: "B", attempted: 1 },
  ]);
});

test("in doubt counts until it is settled, once however often it is told", () => {
  const doubted = [attempted("1"), inDoubt("1"), inDoubt("1"), attempted("2", { recipient: BEA }), inDoubt("2", BEA)];
  expect(results(doubted)).toMatchObject([{ attempted: 2, in_doubt: 2, sent: 0, failed: 0 }]);
  const settled = [...doubted, sent("1"), failed("2", BEA)];
  expect(results(settled)).toMatchObject([{ attempted: 2, in_doubt: 0, sent: 1, failed: 1 }]);
  // Told twice by two instances: the second does not count.
  expect(results([...settled, failed("1"), sent("2", BEA)])).toEqual(results(settled));
});

test("a person who writes back or opts out is counted once, for the message they got", () => {
  const newEvents = [attempted("1"), sent("1"), attempted("2", { recipient: BEA, variant: "B" }), sent("2", BEA)];
  const reactions = [
    received({ id: "102" }),
    received({ id: "102" }),
    optedOut({ id: "102" }),
    optedOut({ id: "102" }),
  ];
  expect(results([...newEvents, ...reactions])).toMatchObject([
    { variant: "A", replied: 0, opted_out: 0 },
    { variant: "B", replied: 1, opted_out: 1 },
  ]);
});

test("what a person wrote before our message is no reply, even when it is read after it", () => {
  expect(results([received(ANN, BEFORE), attempted("1"), sent("1"), received(ANN, BEFORE)])).toMatchObject([
    { replied: 0 },
  ]);
});

test("somebody who never got a message, or only a failed one, is counted nowhere", () => {
  const newEvents = [attempted("1"), failed("1"), received(ANN), optedOut(ANN), received(BEA), optedOut(BEA)];
  expect(results(newEvents)).toMatchObject([{ sent: 0, failed: 1, replied: 0, opted_out: 0 }]);
});

test("a suppression by hand is no opt-out", () => {
  const byHand: NewEvent = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "by_hand" } };
  expect(results([attempted("1"), sent("1"), byHand])).toMatchObject([{ opted_out: 0 }]);
});

test("an opt-out that names only the handle, in whatever letters, finds its person, and the last who had it", () => {
  const namesake = { id: "109", username: "ANN" };
  const newEvents = [
    attempted("1"),
    sent("1"),
    attempted("2", { recipient: namesake, variant: "B" }),
    sent("2", namesake),
  ];
  expect(results([...newEvents, optedOut({ username: "aNN" })])).toMatchObject([{ opted_out: 0 }, { opted_out: 1 }]);
});

test("a reaction to a message in doubt counts once it turns out to be sent, and not at all if it was not", () => {
  const newEvents = [attempted("1"), inDoubt("1"), received(ANN), optedOut({ username: "ann" })];
  expect(results(newEvents)).toMatchObject([{ in_doubt: 1, replied: 0, opted_out: 0 }]);
  expect(results([...newEvents, sent("1")])).toMatchObject([{ in_doubt: 0, sent: 1, replied: 1, opted_out: 1 }]);
  expect(results([...newEvents, failed("1")])).toMatchObject([{ in_doubt: 0, failed: 1, replied: 0, opted_out: 0 }]);
});

test("every message is counted, and nobody reacts who was not reached", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const { groups, open } = fold(variants, variants.initial(), events);
      const sum = (count: (results: VariantResults) => number) => groups.reduce((total, one) => total + count(one), 0);
      const told = (type: string) => events.filter((event) => event.type === type).length;
      expect(sum((one) => one.attempted)).toBe(told("DirectMessageAttempted"));
      expect(sum((one) => one.sent)).toBe(told("DirectMessageSent"));
      expect(sum((one) => one.failed)).toBe(told("DirectMessageFailed"));
      expect(sum((one) => one.attempted - one.sent - one.failed)).toBe(open.size);
      expect(sum((one) => one.in_doubt)).toBe([...open.values()].filter((message) => message.in_doubt).length);
      for (const { sent: reached, replied, opted_out } of groups) {
        expect(replied).toBeLessThanOrEqual(reached);
        expect(opted_out).toBeLessThanOrEqual(reached);
      }
    }),
    { numRuns: 1_000 },
  );
});

/** Of variant A, where each link was clicked as often as is said. */
function clickedOf(newEvents: readonly NewEvent[], clicks: Readonly<Record<string, number>>) {
  const links = given(referrers, newEvents);
  return given(variants, newEvents).groups.map((group) => clicksOfVariant(links, group, (link) => clicks[link] ?? 0));
}

test("clicks count for the variant whose messages alone hold the link", () => {
  const shared = attempted("1", { links: ["go.example/both", "go.example/a"] });
  const other = attempted("2", { recipient: BEA, variant: "B", links: ["go.example/both"] });
  expect(clickedOf([shared, other, sent("1"), sent("2", BEA)], { "go.example/both": 9, "go.example/a": 3 })).toEqual([
    { clicks: 3, people: 1 },
    undefined,
  ]);
});

test("how many people clicked is known where each got a link of their own", () => {
  const taken = [sent("1"), sent("2", BEA)];
  const own = [attempted("1", { links: ["g.co/1"] }), attempted("2", { recipient: BEA, links: ["g.co/2"] })];
  expect(clickedOf([...own, ...taken], { "g.co/1": 4 })).toEqual([{ clicks: 4, people: 1 }]);
  const same = [attempted("1", { links: ["g.co/1"] }), attempted("2", { recipient: BEA, links: ["g.co/1"] })];
  expect(clickedOf([...same, ...taken], { "g.co/1": 4 })).toEqual([{ clicks: 4, people: undefined }]);
  expect(clickedOf([attempted("1")], {})).toEqual([undefined]);
});
