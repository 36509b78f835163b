import * as fc from "fast-check";
import { person } from "../../harness/in-process/social-network.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { parseOpenHours, type SendWindow } from "../../../src/config/send-window.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { RunSelection } from "../../../src/outreach/quota-and-reasons-to-end-run.ts";
import type { SocialUser } from "../../../src/networks/network.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

/** Kinds of people on the list of recipients, by what prevents a message to them or how the list names them. */
export const KINDS = [
  "open",
  "by_handle",
  "closed",
  "protected",
  "unknown",
  "twice",
  "no_consent",
  "no_evidence",
  "for_one",
  "suppressed",
] as const;
export type Kind = (typeof KINDS)[number];

/**
 * Extra entries that make most generated people able to get messages (`open`). People who cannot get one only use up
 * turns.
 */
const OFTEN = Array.from({ length: KINDS.length }, () => "open" as const);

/** Initial state and settings of a history. */
export interface Setting {
  readonly start: number;
  readonly timezone: string;
  readonly dailyLimit: number;
  readonly spacingMs: number;
  /** Time that the network takes for an answer, in ms. */
  readonly answerMs: number;
  /** Maximum number of entries on a page of the network's answers. */
  readonly pageMax: number;
  /** Seed of the order in which steps that are due at the same time are taken. */
  readonly seed: number;
  /**
   * True if a single process owns the log, so that it knows when the holder of a lease is dead. If false, several
   * processes share the log, and none of them can know that.
   */
  readonly isOwned: boolean;
  /** True if the followers of the account are recipients too; then no consent is required. */
  readonly followers: boolean;
  /** Sending window; undefined if messages may go out at any time. */
  readonly window: SendWindow | undefined;
  readonly stopAfterFailures: number | undefined;
  readonly people: readonly Kind[];
}

/**
 * Time zones with start times of histories: mostly shortly before midnight, on ordinary days, on days when clocks
 * change, and at the date line, where a zone skips a day.
 */
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
 * Sending windows with edges near the start times: at midnight, where an hour repeats or is skipped, and with gaps of
 * minutes, for which a run may wait.
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

/**
 * fast-check generator of the recipients that a run's caller selects. All filters combined would exclude nearly all
 * people.
 */
export const selection: fc.Arbitrary<RunSelection> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ limit }) },
  { weight: 1, arbitrary: fc.record({ variant: fc.constantFrom("A", "B") }) },
  { weight: 1, arbitrary: fc.record({ basis: fc.constantFrom("opt_in", "dm_first", "none"), limit }) },
  { weight: 1, arbitrary: fc.record({ source: fc.constantFrom("list", "inbound", "followers"), limit }) },
);

/** Values to which QUOTA_TIMEZONE may change. */
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

/**
 * Returns the id in a handle. A person's handle is `user_100` at first, and `user_100_2` after they rename themselves.
 */
export const idOfHandle = (username: string): string => username.split("_")[1] ?? "";

export const indexOf = (id: string): number => Number(id) - FIRST_ID;

/**
 * Builds the profile that the simulated network shows of a person of this kind; undefined if the network does not know
 * the person.
 */
export function socialUser(kind: Kind, id: string): SocialUser | undefined {
  if (kind === "unknown") return undefined;
  return person(id, { receivesOurDm: kind !== "closed" && kind !== "protected", protected: kind === "protected" });
}

/** Events with which the operator puts a person of this kind on the list of recipients. */
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
  const evidence = kind === "no_evidence" || kind === "no_consent" ? {} : EVIDENCE;
  const named = kind === "for_one" ? { consent_for: CONSENT_FOR } : {};
  const timezone = homeOf(recipient.id ?? idOfHandle(recipient.username ?? ""));
  return addedOf(recipient, { basis, ...evidence, ...named, ...(timezone === undefined ? {} : { timezone }) });
}

const EVIDENCE = { consent_at: "2011-01-01", consent_source: "form" } as const;

/** Campaign that the consent of some people names, so that it holds for no other. */
export const CONSENT_FOR = "spring";

/** Time zones of the people on the list, in turns; undefined if the list has none for a person. */
const HOMES = [undefined, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] as const;

export const homeOf = (id: string): string | undefined => HOMES[indexOf(id) % HOMES.length];
