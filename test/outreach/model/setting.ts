import * as fc from "fast-check";
import { person } from "../../harness/memory/social-network.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { SocialUser } from "../../../src/networks/network.ts";
import { addedOf } from "../../harness/memory/new-events.ts";

/** Somebody on the list, and what is wrong with them. */
export const KINDS = [
  "open",
  "by_handle",
  "closed",
  "protected",
  "unknown",
  "twice",
  "no_consent",
  "suppressed",
] as const;
export type Kind = (typeof KINDS)[number];

/** Most people can be written to: the others only take their turn. */
const OFTEN = Array.from({ length: KINDS.length }, () => "open" as const);

/** What a history begins with. */
export interface Setting {
  readonly start: number;
  readonly timezone: string;
  readonly dailyLimit: number;
  readonly spacingMs: number;
  /** How long the network takes for an answer. */
  readonly answerMs: number;
  /** Entries of a page of the network. */
  readonly pageMax: number;
  /** Decides what happens first where several things could. */
  readonly seed: number;
  /** A process that is the only one owns the log; else nobody knows that whoever held a lease is dead. */
  readonly isOwned: boolean;
  /** Followers are written to too, and nobody has to consent. */
  readonly followers: boolean;
  readonly people: readonly Kind[];
}

/** Shortly before midnight, on common days and on those when clocks change, and where a zone skips or ends a date. */
const BEGINNINGS = [
  ["UTC", "2026-03-01T08:00:00Z"],
  ["UTC", "2026-03-01T23:58:30Z"],
  ["Europe/Berlin", "2026-03-28T22:58:30Z"],
  ["Europe/Berlin", "2026-10-25T00:58:30Z"],
  ["Europe/Berlin", "2026-10-25T22:58:30Z"],
  ["America/New_York", "2026-03-08T06:58:30Z"],
  ["America/New_York", "2026-11-02T04:58:30Z"],
  ["Pacific/Kiritimati", "2026-03-01T09:58:30Z"],
  ["Pacific/Apia", "2011-12-30T09:58:30Z"],
] as const;

/** Where a service may move to. */
export const ZONES = ["UTC", "America/New_York", "Pacific/Kiritimati", "Pacific/Pago_Pago"] as const;

export const setting: fc.Arbitrary<Setting> = fc
  .record({
    beginning: fc.constantFrom(...BEGINNINGS),
    dailyLimit: fc.integer({ min: 1, max: 8 }),
    spacingMs: fc.constantFrom(1_000, 20_000),
    answerMs: fc.constantFrom(0, 3_000),
    pageMax: fc.constantFrom(100, 3),
    seed: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0x7fffffff })),
    isOwned: fc.boolean(),
    followers: fc.constantFrom(false, false, true),
    people: fc.array(fc.constantFrom(...OFTEN, ...KINDS), {
      minLength: 3,
      maxLength: 12,
    }),
  })
  .map(({ beginning: [timezone, time], ...rest }) => ({ ...rest, timezone, start: Date.parse(time) }));

const FIRST_ID = 100;

export const personId = (index: number): string => String(FIRST_ID + index);

/** A person is `user_100` at first and `user_100_2` once they have renamed themselves. */
export const idOfHandle = (username: string): string => username.split("_")[1] ?? "";

export const indexOf = (id: string): number => Number(id) - FIRST_ID;

/** As the network knows them; undefined when it does not. */
export function socialUser(kind: Kind, id: string): SocialUser | undefined {
  if (kind === "unknown") return undefined;
  return person(id, { receivesOurDm: kind !== "closed" && kind !== "protected", protected: kind === "protected" });
}

/** What the operator imports of them. */
export function rowsOf(kind: Kind, id: string): NewEvent[] {
  const byHandle = rowOf(kind, { username: `USER_${id}` });
  if (kind === "by_handle") return [byHandle];
  if (kind === "suppressed") {
    return [{ type: "RecipientSuppressed", data: { recipient: { id }, reason: "by_hand" } }, rowOf(kind, { id })];
  }
  return kind === "twice" ? [rowOf(kind, { id }), byHandle] : [rowOf(kind, { id })];
}

export function rowOf(kind: Kind, recipient: Recipient): NewEvent {
  const basis = kind === "no_consent" ? "none" : "opt_in";
  return addedOf(recipient, { basis });
}
