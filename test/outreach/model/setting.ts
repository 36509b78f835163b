import * as fc from "fast-check";
import { person } from "../../harness/memory/social-network.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { parseOpenHours, type SendWindow } from "../../../src/config/send-window.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { RunSelection } from "../../../src/outreach/run-limits.ts";
import type { SocialUser } from "../../../src/networks/network.ts";
import { addedOf } from "../../harness/memory/new-events.ts";

/** Kinds of people on the list, by the obstacle to writing to them. */
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

/** Makes most people open, because the others only use up turns. */
const OFTEN = Array.from({ length: KINDS.length }, () => "open" as const);

/** The initial state of a history. */
export interface Setting {
  readonly start: number;
  readonly timezone: string;
  readonly dailyLimit: number;
  readonly spacingMs: number;
  /** How long the network takes for an answer. */
  readonly answerMs: number;
  /** Entries in a page of the network's answers. */
  readonly pageMax: number;
  /** Decides the order of steps that are due at the same time. */
  readonly seed: number;
  /** True if a single process owns the log. Otherwise no process knows that a lease's holder is dead. */
  readonly isOwned: boolean;
  /** Followers are recipients too, and no consent is required. */
  readonly followers: boolean;
  /** Undefined if messages go out at any time. */
  readonly window: SendWindow | undefined;
  readonly stopAfterFailures: number | undefined;
  readonly people: readonly Kind[];
}

/** Shortly before midnight on common days, on days when clocks change, and where a zone skips or ends a date. */
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
  ["Australia/Lord_Howe", "2026-04-04T14:58:30Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:28:30Z"],
] as const;

/**
 * Windows with edges near the beginnings: at midnight, where an hour repeats or is skipped, and with gaps of minutes,
 * for which a run may wait.
 */
const WINDOWS = [
  "Mon-Sun 23:50-00:01",
  "Mon-Sun 00:02-23:59",
  "Mon-Sun 00:01-01:59, Mon-Sun 02:30-23:57",
  "Mon-Sun 00:02-02:59, Mon-Sun 03:01-23:59",
  "Mon-Fri 08:00-17:00, Sat-Sun 00:00-24:00",
  "Mon-Sat 00:00-24:00",
] as const;

const window: fc.Arbitrary<SendWindow> = fc
  .record({
    text: fc.constantFrom(...WINDOWS),
    zone: fc.constantFrom("quota" as const, "recipient" as const),
    whenClosed: fc.constantFrom("pause" as const, "end" as const),
  })
  .map((given) => ({ ...given, hours: given.text.split(", ").flatMap((entry) => parseOpenHours(entry) ?? []) }));

const limit = fc.integer({ min: 1, max: 3 });

/** A caller's selection of recipients. All filters combined would exclude nearly all people. */
export const selection: fc.Arbitrary<RunSelection> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ limit }) },
  { weight: 1, arbitrary: fc.record({ variant: fc.constantFrom("A", "B") }) },
  { weight: 1, arbitrary: fc.record({ basis: fc.constantFrom("opt_in", "dm_first", "none"), limit }) },
  { weight: 1, arbitrary: fc.record({ source: fc.constantFrom("list", "inbound", "followers"), limit }) },
);

/** Time zones that a service may change to. */
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
    window: fc.oneof(fc.constant(undefined), window),
    stopAfterFailures: fc.constantFrom(undefined, 0.5),
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

/** The person as the network knows them; undefined if it does not. */
export function socialUser(kind: Kind, id: string): SocialUser | undefined {
  if (kind === "unknown") return undefined;
  return person(id, { receivesOurDm: kind !== "closed" && kind !== "protected", protected: kind === "protected" });
}

/** The operator's import of the person. */
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
  const timezone = homeOf(recipient.id ?? idOfHandle(recipient.username ?? ""));
  return addedOf(recipient, { basis, ...(timezone === undefined ? {} : { timezone }) });
}

/** Homes of the people on the list; undefined if unknown. */
const HOMES = [undefined, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] as const;

export const homeOf = (id: string): string | undefined => HOMES[indexOf(id) % HOMES.length];
