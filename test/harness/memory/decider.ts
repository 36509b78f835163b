import { expect } from "bun:test";
import { account } from "../../../projections/account.ts";
import { links } from "../../../projections/links.ts";
import { contacts } from "../../../projections/contacts.ts";
import { fold } from "../../../projections/projection.ts";
import { quota } from "../../../projections/quota.ts";
import { run } from "../../../projections/run.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { OutreachState } from "../../../src/outreach/decide.ts";
import { testLog } from "./events.ts";

/** When the events of before were recorded. */
const BEFORE = Date.parse("2026-03-01T07:00:00.000Z");

/** What a decider answered, and what is expected of it. */
export interface Decided {
  /** These events, in this order, with these members at least; none: nothing is recorded. */
  thenEvents(...expected: readonly object[]): void;
  /** A refusal, and nothing is recorded. */
  thenRefused(refusal: unknown): void;
  /** An answer that is no events: a verdict, a number. */
  thenAnswers(expected: unknown): void;
}

/** A decider's test in three steps: given these events, when this is decided, then these events. */
export function given(...newEvents: readonly NewEvent[]) {
  const log = testLog(BEFORE);
  for (const { type, data } of newEvents) log.add(type, data);
  const state: OutreachState = {
    run: fold(run, run.initial(), log.events),
    quota: fold(quota, quota.initial(), log.events),
    contacts: fold(contacts, contacts.initial(), log.events),
    account: fold(account, account.initial(), log.events),
    links: fold(links, links.initial(), log.events),
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
