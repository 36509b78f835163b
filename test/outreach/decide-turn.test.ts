import { describe, expect, test } from "bun:test";
import { contacts } from "../../projections/contacts.ts";
import { quota } from "../../projections/quota.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { decideTurn, newSkips, type TurnCommand } from "../../src/outreach/decide-turn.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { RULES } from "../harness/memory/outreach.ts";

const ANN = { id: "7", username: "ann" };
const SELF = { id: "1", username: "us", name: "Us" };
const NOW = { ms: Date.UTC(2026, 2, 1, 8), day: "2026-03-01", timezone: "UTC" };

/** The state after these events, an hour before. */
function given(...newEvents: NewEvent[]): OutreachState {
  const state = { contacts: contacts.initial(), quota: quota.initial() };
  for (const [index, { type, data }] of newEvents.entries()) {
    const event = { type, data, position: index + 1, version: index + 1, time: "2026-03-01T07:00:00.000Z" } as never;
    state.contacts = contacts.evolve(state.contacts, event);
    state.quota = quota.evolve(state.quota, event);
  }
  return {
    ...state,
    run: { current: null, open: new Map() },
    account: { authorized: true, user: SELF, scopes: [] },
  };
}

const when = (more: Partial<TurnCommand> = {}): TurnCommand => ({
  user: { ...ANN, name: "Ann" } as TurnCommand["user"],
  attempt_id: "a",
  run_id: "r",
  accountId: SELF.id,
  now: NOW,
  ...more,
});

const opted: NewEvent = {
  type: "RecipientAdded",
  data: { recipient: ANN, basis: "opt_in", fields: {}, source: "list" },
};

const skipped = (reason: "no_consent"): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id: "r0", recipient: ANN, reason },
});

describe("one person's turn", () => {
  test("given consent, the intent holds all that the network will be asked, and the day it counts for", () => {
    expect(decideTurn(given(opted), RULES, when())).toMatchObject({
      events: [
        {
          type: "DirectMessageAttempted",
          data: {
            attempt_id: "a",
            run_id: "r",
            recipient: ANN,
            text: "Hi Ann",
            account_id: SELF.id,
            day: NOW.day,
            timezone: "UTC",
          },
        },
      ],
    });
  });

  test("given no consent, it is a skip; and nothing where the log tells of it already", () => {
    expect(decideTurn(given(), RULES, when())).toMatchObject({ events: [skipped("no_consent")].map(ofThisRun) });
    expect(decideTurn(given(skipped("no_consent")), RULES, when())).toEqual({ events: [] });
  });

  test("given another account, the run ends", () => {
    expect(decideTurn(given(opted), RULES, when({ accountId: "2" }))).toEqual({ refusal: { end: "not_authorized" } });
  });

  test("given a day without places, the run ends; but a skip takes none", () => {
    const full = { ...RULES, dailyLimit: 0 };
    expect(decideTurn(given(opted), full, when())).toEqual({ refusal: { end: "daily_limit_reached" } });
    expect(decideTurn(given(), full, when())).toMatchObject({ events: [{ type: "DirectMessageSkipped" }] });
  });
});

test("skips of one batch are told once a person and reason, and none of whom the log tells", () => {
  const verdict = { verdict: "skip", reason: "no_consent" } as const;
  const refused = [
    { who: ANN, verdict },
    { who: ANN, verdict },
    { who: { username: "bo" }, verdict: { verdict: "pass" } as const },
    { who: { username: "Cy" }, verdict },
    { who: { username: "cy" }, verdict },
  ];
  expect(newSkips(given(), "r", refused).map(({ data }) => ("recipient" in data ? data.recipient : null))).toEqual([
    ANN,
    { username: "Cy" },
  ]);
  expect(newSkips(given(skipped("no_consent")), "r", refused)).toHaveLength(1);
});

function ofThisRun(event: NewEvent): NewEvent {
  return { ...event, data: { ...event.data, run_id: "r" } } as NewEvent;
}
