import { expect } from "bun:test";
import { account } from "../../../projections/account.ts";
import { campaigns } from "../../../projections/campaigns.ts";
import { links } from "../../../projections/links.ts";
import { contacts } from "../../../projections/contacts.ts";
import { fold } from "../../../projections/projection.ts";
import { quota } from "../../../projections/quota.ts";
import { run } from "../../../projections/current-run.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { OutreachState } from "../../../src/outreach/decide.ts";
import { testLog } from "./number-and-fold-events.ts";

/** Time at which the events of `given` were recorded. */
const BEFORE = Date.parse("2026-03-01T07:00:00.000Z");

/** Result of the decider under test, and checks of it. */
export interface Decided {
  /**
   * Expects that the decider returned these events in this order, with at least these fields; without arguments, no
   * events.
   */
  thenEvents(...expected: readonly object[]): void;
  /** Expects that the decider refused, and returned no events. */
  thenRefused(refusal: unknown): void;
  /** Expects that the decider returned something other than events, such as a verdict or a number. */
  thenAnswers(expected: unknown): void;
}

/** Tests a decider in three steps: given these events, when a decision is made, then these events follow. */
export function given(...newEvents: readonly NewEvent[]) {
  const log = testLog(BEFORE);
  for (const { type, data } of newEvents) log.add(type, data);
  const state: OutreachState = {
    run: fold(run, run.initial(), log.events),
    quota: fold(quota, quota.initial(), log.events),
    contacts: fold(contacts, contacts.initial(), log.events),
    account: fold(account, account.initial(), log.events),
    links: fold(links, links.initial(), log.events),
    campaigns: fold(campaigns, campaigns.initial(), log.events),
    ms: log.events.reduce((newest, { time }) => Math.max(newest, Date.parse(time)), BEFORE),
  };
  return {
    when(decide: (state: OutreachState) => unknown): Decided {
      const decided = decide(state);
      return {
        thenEvents(...expected) {
          expect(decided).toMatchObject({ events: expected });
          expect((decided as { events: readonly unknown[] }).events).toHaveLength(expected.length);
        },
        thenRefused: (refusal) => expect(decided).toEqual({ refusal }),
        thenAnswers: (expected) => expect(decided).toEqual(expected),
      };
    },
  };
}
