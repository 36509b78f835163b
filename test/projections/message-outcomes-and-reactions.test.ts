// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fold } from "../../projections/projection.ts";
import { results, type Results } from "../../projections/message-outcomes-and-reactions.ts";
import { FETCH_MS } from "../../projections/clicks-suspected-as-networks-own.ts";
import { conversions } from "../../projections/conversion-counts.ts";
import { runs } from "../../projections/runs.ts";
import { visits } from "../../projections/link-clicks-by-day.ts";
import { createResults } from "../../src/history/results.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { histories } from "./generate-history.ts";
import { given, testLog } from "../harness/in-process/number-and-fold-events.ts";
import { countCases } from "../harness/case-count.ts";

const RUN = { run_id: "r" };
const ANN = { id: "101", username: "Ann" };
const BEA = { id: "102", username: "bea" };

// `given` records the first event at 10:00:01 and each other one a second later.
const BEFORE = "2026-11-20T10:00:00.500Z";
const AFTER = "2026-11-20T10:30:00.000Z";

interface Intended {
  readonly recipient?: typeof ANN;
  readonly variant?: string;
  readonly template?: string;
  readonly links?: string[];
  /** Codes of the recipient's personal links. */
  readonly codes?: readonly string[];
}

function attempted(attempt_id: string, intended: Intended = {}): NewEvent {
  const { recipient = ANN, variant = "A", template = "aaaa", links = [], codes = [] } = intended;
  const personal_links = codes.map((code) => ({ code, link: "go.example/shared" }));
  const own = codes.length === 0 ? {} : { personal_links };
  const data = { attempt_id, ...RUN, recipient, text: "Hi", variant, template, links, day: "2026-11-20", ...own };
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

const NONE = { attempted: 0, sent: 0, failed: 0, in_doubt: 0, seen: 0, replied: 0, opted_out: 0 };

const OTHERS = { conversions: conversions.initial(), runs: runs.initial(), visits: visits.initial() };

/** The figures of each variant with messages in the log. */
async function byVariant(newEvents: readonly NewEvent[]) {
  const { rows } = await createResults({ results: given(results, newEvents), ...OTHERS }, "variant", {
    from: undefined,
    to: undefined,
  });
  return rows.map(({ group, figures }) => {
    const { attempted, sent, failed, in_doubt, seen, replied, opted_out } = figures;
    const { template, variant } = group;
    return { template, variant, attempted, sent, failed, in_doubt, seen, replied, opted_out };
  });
}

test("a variant is counted separately for each template and for messages without one", async () => {
  const old: NewEvent = {
    type: "DirectMessageAttempted",
    data: { attempt_id: "0", ...RUN, recipient: ANN, text: "Hi", variant: "A", day: "2026-11-19" },
  };
  const newEvents = [old, failed("0"), attempted("1"), sent("1"), attempted("2", { recipient: BEA, template: "bbbb" })];
  expect(await byVariant([...newEvents, attempted("3", { recipient: BEA, variant: "B" })])).toEqual([
    { ...NONE, template: null, variant: "A", attempted: 1, failed: 1 },
    { ...NONE, template: "aaaa", variant: "A", attempted: 1, sent: 1 },
    { ...NONE, template: "bbbb", variant: "A", attempted: 1 },
    { ...NONE, template: "aaaa", variant: "B", attempted: 1 },
  ]);
});

test("a message in doubt counts once, until it is settled", async () => {
  const doubted = [attempted("1"), inDoubt("1"), inDoubt("1"), attempted("2", { recipient: BEA }), inDoubt("2", BEA)];
  expect(await byVariant(doubted)).toMatchObject([{ attempted: 2, in_doubt: 2, sent: 0, failed: 0 }]);
  const settled = [...doubted, sent("1"), failed("2", BEA)];
  expect(await byVariant(settled)).toMatchObject([{ attempted: 2, in_doubt: 0, sent: 1, failed: 1 }]);
  // The other instance records other outcomes for the same messages afterwards. The first record of each counts.
  expect(await byVariant([...settled, failed("1"), sent("2", BEA)])).toEqual(await byVariant(settled));
});

test("a reply or opt-out counts once, for the message that the recipient got", async () => {
  const newEvents = [attempted("1"), sent("1"), attempted("2", { recipient: BEA, variant: "B" }), sent("2", BEA)];
  const reactions = [
    received({ id: "102" }),
    received({ id: "102" }),
    optedOut({ id: "102" }),
    optedOut({ id: "102" }),
  ];
  expect(await byVariant([...newEvents, ...reactions])).toMatchObject([
    { variant: "A", replied: 0, opted_out: 0 },
    { variant: "B", replied: 1, opted_out: 1 },
  ]);
});

test("a message written before ours is no reply, even if read later", async () => {
  expect(await byVariant([received(ANN, BEFORE), attempted("1"), sent("1"), received(ANN, BEFORE)])).toMatchObject([
    { replied: 0 },
  ]);
});

test("reactions of recipients without a sent message do not count", async () => {
  const newEvents = [attempted("1"), failed("1"), received(ANN), optedOut(ANN), received(BEA), optedOut(BEA)];
  expect(await byVariant(newEvents)).toMatchObject([{ sent: 0, failed: 1, replied: 0, opted_out: 0 }]);
});

test("a suppression by hand is no opt-out", async () => {
  const byHand: NewEvent = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "by_hand" } };
  expect(await byVariant([attempted("1"), sent("1"), byHand])).toMatchObject([{ opted_out: 0 }]);
});

test("an imported opt-out counts only if it is dated after the message, and an opt-out by hash never", async () => {
  const listed = (suppressed_at: string): NewEvent => ({
    type: "RecipientSuppressed",
    data: { recipient: ANN, reason: "opt_out", suppressed_at },
  });
  const hashed: NewEvent = { type: "RecipientSuppressed", data: { reason: "opt_out", hashes: ["h"] } };
  for (const [event, opted_out] of [
    [listed(AFTER), 1],
    [listed("2020-01-01"), 0],
    [hashed, 0],
  ] as const)
    expect(await byVariant([attempted("1"), sent("1"), event])).toMatchObject([{ opted_out }]);
});

test("an opt-out by handle, in any case, counts for the handle's last holder", async () => {
  const namesake = { id: "109", username: "ANN" };
  const newEvents = [
    attempted("1"),
    sent("1"),
    attempted("2", { recipient: namesake, variant: "B" }),
    sent("2", namesake),
  ];
  expect(await byVariant([...newEvents, optedOut({ username: "aNN" })])).toMatchObject([
    { opted_out: 0 },
    { opted_out: 1 },
  ]);
});

test("a reaction to a message in doubt counts only if the message was sent", async () => {
  const newEvents = [attempted("1"), inDoubt("1"), received(ANN), optedOut({ username: "ann" })];
  expect(await byVariant(newEvents)).toMatchObject([{ in_doubt: 1, replied: 0, opted_out: 0 }]);
  expect(await byVariant([...newEvents, sent("1")])).toMatchObject([
    { in_doubt: 0, sent: 1, replied: 1, opted_out: 1 },
  ]);
  expect(await byVariant([...newEvents, failed("1")])).toMatchObject([
    { in_doubt: 0, failed: 1, replied: 0, opted_out: 0 },
  ]);
});

test("in any history, messages match the events, and reactions never exceed sent messages", async () => {
  await fc.assert(
    fc.asyncProperty(histories(), async ({ events }) => {
      const state = fold(results, results.initial(), events);
      const told = (type: string) => events.filter((event) => event.type === type).length;
      const messages = [...state.messages.values()];
      const having = (...outcomes: string[]) => messages.filter(({ outcome }) => outcomes.includes(outcome)).length;
      expect(messages.length).toBe(told("DirectMessageAttempted"));
      expect(having("sent")).toBe(told("DirectMessageSent"));
      expect(having("failed")).toBe(told("DirectMessageFailed"));
      expect(having("open", "in_doubt")).toBe(state.open.size);
      const { rows } = await createResults({ results: state, ...OTHERS }, "run", ALWAYS);
      for (const { figures } of rows) {
        expect(figures.replied).toBeLessThanOrEqual(figures.sent);
        expect(figures.opted_out).toBeLessThanOrEqual(figures.sent);
        expect(figures.tracked.clicked).toBeLessThanOrEqual(figures.tracked.recipients);
      }
    }),
    { numRuns: countCases(1_000) },
  );
});

const ALWAYS = { from: undefined, to: undefined };

/** Folds events, each at a number of seconds after the start. */
function at(...told: readonly (readonly [seconds: number, newEvent: NewEvent])[]): Results {
  let state = results.initial();
  for (const [position, [seconds, newEvent]] of told.entries()) {
    const time = new Date(Date.parse("2026-11-20T10:00:00.000Z") + seconds * 1_000).toISOString();
    const event = { ...newEvent, id: "", position: position + 1, stream: "", version: 1, time, hash: "", meta: {} };
    state = results.evolve(state, event);
  }
  return state;
}

const clicked = (code: string): NewEvent => ({ type: "PersonalLinkClicked", data: { code } });

const FETCH_S = FETCH_MS / 1_000;

function trackedIn(state: Results) {
  const tracked = state.messages.get(0)?.tracked;
  return tracked && { clicks: tracked.clicks.length, suspected: tracked.suspected.length, first: tracked.first };
}

const ms = (seconds: number): number => Date.parse("2026-11-20T10:00:00.000Z") + seconds * 1_000;

test("a click on a personal link is suspected until the network's fetch time has passed", () => {
  const begun = [
    [0, attempted("1", { codes: ["secret"] })],
    [30, sent("1")],
  ] as const;
  const suspected = { clicks: 0, suspected: 1, first: null };
  expect(trackedIn(at(...begun, [30 + FETCH_S, clicked("secret")]))).toEqual(suspected);
  const late = 30 + FETCH_S + 1;
  expect(trackedIn(at(...begun, [late, clicked("secret")]))).toEqual({ clicks: 1, suspected: 0, first: ms(late) });
  expect(trackedIn(at(...begun, [late, clicked("secret")], [500, clicked("secret")]))).toEqual({
    clicks: 2,
    suspected: 0,
    first: ms(late),
  });
  expect(trackedIn(at(...begun, [late, clicked("guessed")]))).toEqual({ clicks: 0, suspected: 0, first: null });
});

test("a click is suspected while its message has no outcome, or if it failed", () => {
  const begun = [0, attempted("1", { codes: ["secret"] })] as const;
  const suspected = { clicks: 0, suspected: 1, first: null };
  expect(trackedIn(at(begun, [500, clicked("secret")]))).toEqual(suspected);
  expect(trackedIn(at(begun, [30, inDoubt("1")], [30 + FETCH_S, clicked("secret")]))).toEqual(suspected);
  expect(trackedIn(at(begun, [30, failed("1")], [500, clicked("secret")]))).toEqual(suspected);
  expect(trackedIn(at(begun, [30, inDoubt("1")], [500, clicked("secret")]))).toMatchObject({ clicks: 1 });
});

test("clicks by recipients are counted with the median time to the first click", async () => {
  const CY = { id: "103", username: "cy" };
  const state = at(
    [0, attempted("1", { codes: ["a"] })],
    [1, sent("1")],
    [10, attempted("2", { recipient: BEA, codes: ["b"] })],
    [11, sent("2", BEA)],
    [20, attempted("3", { recipient: CY })],
    [21, sent("3", CY)],
    [61, clicked("a")],
    [62, clicked("a")],
    [211, clicked("b")],
  );
  const { rows, total } = await createResults({ results: state, ...OTHERS }, "basis", ALWAYS);
  const tracked = { recipients: 2, clicked: 2, clicks: 3, suspected: 0, converted: 0, first_click_ms: 130_000 };
  expect(rows).toMatchObject([{ group: { basis: null }, figures: { sent: 3, tracked, clicks: null } }]);
  expect(total.figures).toMatchObject({ tracked, click_rate: { rate: 1 } });
});

test("an opt-out by handle reads only the messages to that handle", () => {
  const others = Array.from({ length: 500 }, (_, nth) => ({ id: String(1000 + nth), username: `other_${nth}` }));
  const events = [...others, ANN].flatMap((who, nth) => [
    attempted(String(nth), { recipient: who }),
    sent(String(nth), who),
  ]);
  const state = given(results, events);
  let looked = 0;
  const { messages } = state;
  state.messages = new Proxy(messages, {
    get(target, member) {
      if (member === "get") looked++;
      const value: unknown = Reflect.get(target, member);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const log = testLog(Date.parse("2026-11-21T10:00:00.000Z"));
  log.add("RecipientSuppressed", { recipient: { username: "ANN" }, reason: "opt_out" });
  for (const event of log.events) results.evolve(state, event);
  expect(messages.get(others.length)).toMatchObject({ username: "ann", opted_out: log.events[0]!.position });
  expect(looked).toBeLessThan(5);
});

test("an opt-out by handle finds the last message to it, as a full scan does", () => {
  const person = fc.record({ id: fc.constantFrom("101", "102", "103"), username: fc.constantFrom("a", "b") });
  fc.assert(
    fc.property(fc.array(person, { maxLength: 8 }), fc.constantFrom("a", "b", "c"), (people, username) => {
      const events = people.flatMap((who, nth) => [attempted(String(nth), { recipient: who }), sent(String(nth), who)]);
      const { messages } = given(results, [...events, optedOut({ username })]);
      const last = new Map(people.map(({ id }, nth) => [id, nth]));
      const wanted = people.findLastIndex((who, nth) => who.username === username && last.get(who.id) === nth);
      const found = [...messages].filter(([, message]) => message.opted_out > 0).map(([number]) => number);
      expect(found).toEqual(wanted === -1 ? [] : [wanted]);
    }),
  );
});

test("revoked tracking also removes the clicks on a message before a failed follow-up and its retry", () => {
  const inFollowUp = (event: NewEvent): NewEvent =>
    ({ ...event, data: { ...event.data, run_id: "r2", campaign: "follow-up" } }) as NewEvent;
  const state = given(results, [
    attempted("1", { codes: ["a"] }),
    sent("1"),
    ...[attempted("2", { codes: ["b"] }), failed("2"), attempted("3", { codes: ["c"] }), sent("3")].map(inFollowUp),
    { type: "ConsentRecorded", data: { recipient: { id: "101" }, tracking: "denied" } },
  ]);
  const sentOnes = [...state.messages.values()].filter(({ outcome }) => outcome === "sent");
  expect(sentOnes.map(({ tracked }) => tracked)).toEqual([null, null]);
  expect(state.codes.has("a")).toBe(false);
});

test("revoked tracking, by id or by handle, removes the recipient's tracked clicks", () => {
  const begun = [
    [0, attempted("1", { codes: ["secret"] })],
    [1, sent("1")],
    [61, clicked("secret")],
  ] as const;
  const revocations: readonly NewEvent[] = [
    { type: "ConsentRecorded", data: { recipient: { id: "101" }, tracking: "denied" } },
    { type: "ConsentRecorded", data: { recipient: { username: "aNN" }, tracking: "unknown" } },
    { type: "RecipientAdded", data: { recipient: ANN, basis: "none", fields: {}, source: "list", tracking: "denied" } },
  ];
  for (const revocation of revocations) {
    const state = at(...begun, [70, revocation], [80, clicked("secret")]);
    expect(state.messages.get(0)).toMatchObject({ outcome: "sent", tracked: null });
    expect(state.codes.size).toBe(0);
  }
  const others: readonly NewEvent[] = [
    { type: "ConsentRecorded", data: { recipient: BEA, tracking: "denied" } },
    { type: "ConsentRecorded", data: { recipient: ANN, basis: "opt_in" } },
  ];
  for (const other of others) expect(trackedIn(at(...begun, [70, other]))).toMatchObject({ clicks: 1 });
});
