import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { createDeliveryPart, type Requested } from "./generate-delivery-history.ts";
import { createOutreachPart } from "./generate-outreach-history.ts";
import { testLog, type TestLog } from "../harness/in-process/number-and-fold-events.ts";

export interface History {
  readonly events: readonly Recorded[];
  /** Requested dispatches in the order of the log, tracked without the projections. */
  readonly requested: readonly Requested[];
}

/**
 * Random choices for a part of a history. Smaller numbers lead to simpler histories, so that fast-check can shrink
 * them.
 */
export interface Dice {
  /** Returns one of `list`, which is not empty. */
  pick<Value>(list: readonly Value[]): Value;
  /** True in one of `n` cases. */
  once(n: number): boolean;
}

/** Appends events that may follow the log so far. Appends nothing if none fits. */
export type Step = (dice: Dice) => void;

/**
 * fast-check generator of possible histories: runs, people found by id and handle, clicks, dispatches, retries,
 * settlements.
 */
export function histories(lengthMax = 150): fc.Arbitrary<History> {
  return fc
    .array(fc.array(fc.nat(1000), { minLength: 6, maxLength: 6 }), { maxLength: lengthMax, size: "max" })
    .map((rolls) => {
      const log = testLog();
      const delivery = createDeliveryPart(log);
      const parts: readonly (readonly Step[])[] = [createOutreachPart(log), delivery.steps, accountPart(log)];
      for (const numbers of rolls) {
        const dice = diceOf(numbers);
        dice.pick(dice.pick([...parts, ...parts, parts[1] ?? [], parts[0] ?? []]))(dice);
      }
      return { events: log.events, requested: delivery.requested() };
    });
}

function diceOf(numbers: readonly number[]): Dice {
  let next = 0;
  const roll = (): number => numbers[next++ % numbers.length] ?? 0;
  return {
    pick(list) {
      const picked = list[roll() % list.length];
      if (picked === undefined) throw new Error("nothing to pick from");
      return picked;
    },
    once: (n) => roll() % n === n - 1,
  };
}

function accountPart(log: TestLog): readonly Step[] {
  const user = { id: "9001", username: "acme", name: "Acme" };
  const expires_at = "2026-11-20T12:00:00.000Z";
  return [
    () => log.add("AccountAuthorized", { user, scopes: ["dm.write", "users.read"], expires_at }),
    () => log.add("TokenRefreshed", { user_id: user.id, expires_at }),
    (dice) => log.add("TokenRefreshFailed", { user_id: user.id, reason: "refused", dead: dice.once(2) }),
    () => log.add("AccountUnlinked", { user_id: user.id, revoked: true }),
    () => log.add("LogRestored", { cause: "restore", epoch: "e", found_position: log.events.length, found_hash: "h" }),
    () => log.add("LogTimeCorrected", { at: "2026-11-20T10:00:00.000Z", day: "2026-11-20", timezone: "UTC" }),
    () => log.add("LogLossAccepted", { reason: "lost_tail", found_position: log.events.length, found_hash: "h" }),
    () =>
      log.add("AuthenticationsFailed", {
        addresses: 1,
        failed: 2,
        turned_away: 0,
        since: expires_at,
        until: expires_at,
      }),
    () => log.add("PersonForgotten", { hashes: ["mark"], keys: ["p00"] }),
    () => log.add("PersonalDataExpired", { before: "2026-11-01", days: 1 }),
    () => log.add("LogVerified", { position: log.events.length, hash: "h", checked: 1, result: "whole" }),
    () => log.add("BackupMade", { position: log.events.length, hash: "h", made_at: expires_at }),
    () => log.add("EventsArchived", { position: log.events.length, events: 1, segments: 1, bytes: 9 }),
    () => log.add("BackupRehearsed", { position: log.events.length, hash: "h", made_at: expires_at }),
    () => log.add("PersonalKeysLost", { lost: "0badcafe", replaced_by: "1badcafe" }),
    (dice) => log.add("TokenUsed", { name: "web", token_id: "3f2a9c", day: `2026-11-2${dice.pick([1, 2, 3])}` }),
    () => log.add("KeyRotated", { from: "0011", to: "2233" }),
    () => log.add("WhatIfAsked", { rules: ["DAILY_LIMIT"], position: log.events.length }),
    () => log.add("ProjectionRebuilt", { projection: "stats", version: 1, position: log.events.length }),
    () => log.add("RequestAnswered", { digest: "d", status: 202, headers: { "content-type": "x" }, body: "{}" }),
  ];
}
