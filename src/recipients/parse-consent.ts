import { basis, tracking } from "../../events/outreach.ts";
import type { ConsentRecord } from "../../projections/consent.ts";
import { isoTime } from "../platform/clock.ts";
import { shortened } from "../template/normalize-field.ts";
import { EITHER } from "../platform/counts-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** What says something of a recipient's consent: columns of a file, members of a request, options of a command. */
export const CONSENT_MEMBERS = [
  "basis",
  "consent_at",
  "consent_source",
  "consent_text",
  "tracking",
  "tracking_at",
  "tracking_source",
  "tracking_text",
] as const;

export type ConsentMember = (typeof CONSENT_MEMBERS)[number];

/** Gives a member as it was written; blank is the same as absent. */
export type GivenConsent = (member: ConsentMember) => string | undefined;

/** A member that cannot be used, and why. */
export interface ConsentFault {
  readonly member: ConsentMember;
  readonly reason: string;
}

/** Longest `…_text`, in characters: the wording beside a check box, or its version. A whole policy has an address. */
export const CONSENT_TEXT_CHARS_MAX = 1_000;

/** Longest `…_source`, in characters: the address of a form with what a campaign adds to it. */
export const CONSENT_SOURCE_CHARS_MAX = 500;

/** Longest `…_at`, in characters: nanoseconds and an offset. */
export const CONSENT_TIME_CHARS_MAX = 40;

/** Day before which no consent was given on the web. A time of 0 that a program exports as 1970 is none. */
const EARLIEST_DAY = "1995-01-01";

/** Somewhere on earth a day begins 14 hours before it does in UTC. */
const DAY_AHEAD_MS = 14 * 3_600_000;

/** The clock of the machine with the form may be ahead of ours. */
const CLOCK_AHEAD_MS = 5 * 60_000;

/** Characters of a word that is none of those known: enough to find it by. */
const WORD_CHARS_SHOWN = 40;

const BASES = basis.anyOf.map((one) => one.const);
const TRACKINGS = tracking.anyOf.map((one) => one.const);

type Parsed = string | { readonly fault: string };

type Subject = "basis" | "tracking";

/** How members of evidence begin, by what they are evidence of: without that they say nothing. */
const EVIDENCE_OF = { basis: "consent", tracking: "tracking" } as const satisfies Record<Subject, string>;

/** How they end, and are parsed. */
const EVIDENCE = { at: parseDay, source: parseSource, text: parseWording } as const;

/** Parses what is said of consent; evidence is neither completed nor guessed. `now`: in ms since 1970. */
export function parseConsent(given: GivenConsent, now: number): ConsentRecord | ConsentFault {
  const basis = parseWord(given, "basis", BASES);
  if (isFault(basis)) return basis;
  const tracking = parseWord(given, "tracking", TRACKINGS);
  if (isFault(tracking)) return tracking;
  const record = omitUndefined({ basis, tracking });
  const evidence: { [Member in Exclude<ConsentMember, Subject>]?: string } = {};
  for (const subject of ["basis", "tracking"] as const) {
    for (const kind of ["at", "source", "text"] as const) {
      const member = `${EVIDENCE_OF[subject]}_${kind}` as const;
      const text = given(member)?.trim() ?? "";
      if (text === "") continue;
      if (record[subject] === undefined) return { member, reason: `${member} needs ${subject} beside it` };
      const parsed = EVIDENCE[kind](text, now);
      if (typeof parsed === "object") return { member, reason: `${member} ${parsed.fault}` };
      evidence[member] = parsed;
    }
  }
  return { ...evidence, ...record };
}

export function isFault(parsed: unknown): parsed is ConsentFault {
  return typeof parsed === "object" && parsed !== null && "reason" in parsed;
}

/** `Opt-In`, `opt in` and `opt_in` are one. */
function parseWord<Word extends string>(given: GivenConsent, member: Subject, words: readonly Word[]) {
  const raw = given(member)?.trim() ?? "";
  if (raw === "") return undefined;
  const wanted = raw.toLowerCase().replace(/[\s_-]+/g, "_");
  const word = words.find((one) => one === wanted);
  if (word !== undefined) return word;
  return {
    member,
    reason: `${member} must be ${EITHER.format(words)}; got ${JSON.stringify(shortened(raw, WORD_CHARS_SHOWN))}`,
  };
}

const DAY = /^\d{4}-\d\d-\d\d$/;

const NO_TIME = "is neither a day such as 2026-03-02 nor a time with its offset such as 2026-03-02T10:15:00+01:00";

/** A day stays one: nothing is known of its hour. A time becomes one in UTC. */
export function parseDay(text: string, now: number): Parsed {
  if (text.length > CONSENT_TIME_CHARS_MAX) return { fault: NO_TIME };
  let at: Temporal.Instant;
  try {
    at = DAY.test(text) ? Temporal.Instant.from(`${text}T00:00Z`) : Temporal.Instant.from(text);
  } catch (fault) {
    if (!(fault instanceof RangeError)) throw fault;
    return { fault: NO_TIME };
  }
  const ms = at.epochMilliseconds;
  if (ms < Date.parse(EARLIEST_DAY)) return { fault: `is before ${EARLIEST_DAY}` };
  if (ms > now + (DAY.test(text) ? DAY_AHEAD_MS : CLOCK_AHEAD_MS)) return { fault: "is in the future" };
  return DAY.test(text) ? text : isoTime(ms);
}

/** What looks like an address. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/|^https?:/i;

function parseSource(text: string): Parsed {
  if (text.length > CONSENT_SOURCE_CHARS_MAX) return { fault: `has more than ${CONSENT_SOURCE_CHARS_MAX} characters` };
  if (!ADDRESS.test(text)) return text;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return { fault: "is no http or https address" };
  if (url.username !== "" || url.password !== "") return { fault: "has a user name or a password in its address" };
  return text;
}

function parseWording(text: string): Parsed {
  return text.length > CONSENT_TEXT_CHARS_MAX ? { fault: `has more than ${CONSENT_TEXT_CHARS_MAX} characters` } : text;
}
