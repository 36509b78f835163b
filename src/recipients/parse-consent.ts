import { Type } from "@sinclair/typebox";
import { basis, tracking } from "../../events/outreach.ts";
import type { ConsentRecord } from "../../projections/consent.ts";
import { CONSENT_TIME_CHARS_MAX, type DateOrder, type Parsed, parseDay } from "./parse-day.ts";
import { shortened } from "../template/normalize-field.ts";
import { EITHER } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Names of a consent's members, which are columns of a file, members of a request and options of a command. */
export const CONSENT_MEMBERS = [
  "basis",
  "consent_at",
  "consent_source",
  "consent_text",
  "consent_for",
  "tracking",
  "tracking_at",
  "tracking_source",
  "tracking_text",
] as const;

export type ConsentMember = (typeof CONSENT_MEMBERS)[number];

/** Function that returns a member of a consent as the caller wrote it. A blank text counts as absent. */
export type GivenConsent = (member: ConsentMember) => string | undefined;

/** Fault in a consent: the member that cannot be used, and the reason. */
export interface ConsentFault {
  readonly member: ConsentMember;
  readonly reason: string;
  /** The consent that is absent although its evidence is given. */
  readonly lacks?: Subject;
}

/** Consent that the operator states once, for all rows of a file that do not say it themselves. */
export interface StatedConsent {
  readonly basis?: ConsentRecord["basis"];
  readonly consent_source?: string;
}

/**
 * Maximum length of a consent's `…_text` member, in characters. It holds the wording next to a check box, or its
 * version; for a whole policy, its address.
 */
export const CONSENT_TEXT_CHARS_MAX = 1_000;

/**
 * Maximum length of a consent's `…_source` member, in characters: the address of a form, with the parameters that
 * marketing programs add.
 */
export const CONSENT_SOURCE_CHARS_MAX = 500;

/** Longest name of a campaign or topic that a consent is for, in characters. */
const CONSENT_FOR_CHARS_MAX = 100;

const consentTime = Type.String({
  title: "time",
  maxLength: CONSENT_TIME_CHARS_MAX,
  description: "When: a day, or a time with its offset (ISO 8601); not in the future.",
  examples: ["2025-03-02", "2025-03-02T10:15:00+01:00"],
});
const consentSource = Type.String({
  maxLength: CONSENT_SOURCE_CHARS_MAX,
  description: "Where: the http(s) address of a form, or a few words.",
  examples: ["https://shop.example/form", "trade fair"],
});
const consentText = Type.String({
  maxLength: CONSENT_TEXT_CHARS_MAX,
  description: "The wording that was agreed to, or its version.",
  examples: ["Yes, send me news (version 3)"],
});

/** Schemas of a consent's members, for rows of a list and for consents that an operator records. */
export const consentMembers = {
  basis: Type.Optional(Type.Union(basis.anyOf, { title: "word", description: "Why they may be written to." })),
  consent_at: Type.Optional(consentTime),
  consent_source: Type.Optional(consentSource),
  consent_text: Type.Optional(consentText),
  consent_for: Type.Optional(
    Type.String({
      maxLength: CONSENT_FOR_CHARS_MAX,
      description: "The campaign or topic that the consent names; it then holds for no other.",
      examples: ["newsletter"],
    }),
  ),
  tracking: Type.Optional(
    Type.Union(tracking.anyOf, {
      title: "word",
      description: "Whether clicks on their own links may be recorded.",
    }),
  ),
  tracking_at: Type.Optional(consentTime),
  tracking_source: Type.Optional(consentSource),
  tracking_text: Type.Optional(consentText),
};

/** Maximum number of characters shown of an unknown word: enough to find it in the file. */
const WORD_CHARS_SHOWN = 40;

const BASES = basis.anyOf.map((one) => one.const);
const TRACKINGS = tracking.anyOf.map((one) => one.const);

type Subject = "basis" | "tracking";

/**
 * Prefix of the evidence (date, source, wording) for each of the two consents. Evidence for a consent that is absent is
 * refused.
 */
const EVIDENCE_OF = { basis: "consent", tracking: "tracking" } as const satisfies Record<Subject, string>;

/** Parsers of evidence members, by the suffix of their name. */
const EVIDENCE = { at: parseDay, source: parseSource, text: parseWording, for: parseFor } as const;

const TRACKING_KINDS = ["at", "source", "text"] as const;
const KINDS = [...TRACKING_KINDS, "for"] as const;

/** Parses the members of a consent. Missing evidence is not completed or guessed. `now`: in ms since 1970. */
export function parseConsent(given: GivenConsent, now: number, dates?: DateOrder): ConsentRecord | ConsentFault {
  const basis = parseWord(given, "basis", BASES);
  if (isFault(basis)) return basis;
  const tracking = parseWord(given, "tracking", TRACKINGS);
  if (isFault(tracking)) return tracking;
  const record = omitUndefined({ basis, tracking });
  const evidence: { [Member in Exclude<ConsentMember, Subject>]?: string } = {};
  for (const subject of ["basis", "tracking"] as const) {
    for (const kind of subject === "basis" ? KINDS : TRACKING_KINDS) {
      const member = `${EVIDENCE_OF[subject]}_${kind}` as keyof typeof evidence;
      const text = given(member)?.trim() ?? "";
      if (text === "") continue;
      if (record[subject] === undefined)
        return { member, reason: `${member} needs ${subject} beside it`, lacks: subject };
      const parsed = EVIDENCE[kind](text, now, dates);
      if (typeof parsed === "object") return { member, reason: `${member} ${parsed.fault}` };
      evidence[member] = parsed;
    }
  }
  return { ...evidence, ...record };
}

/**
 * Parses the consent that the operator states for all rows of a file. A blank text counts as absent. Throws a
 * ServiceError (invalid) for an unknown basis or an unusable source.
 */
export function parseStatedConsent(given: {
  readonly basis?: string | undefined;
  readonly consent_source?: string | undefined;
}): StatedConsent {
  const basis = parseWord(() => given.basis, "basis", BASES);
  const source = given.consent_source?.trim() ?? "";
  const parsed = source === "" ? undefined : parseSource(source);
  if (isFault(basis)) throw new ServiceError("invalid", `for all rows: ${basis.reason}`);
  if (typeof parsed === "object") throw new ServiceError("invalid", `for all rows: consent_source ${parsed.fault}`);
  return omitUndefined({ basis, consent_source: parsed });
}

export function isFault(parsed: unknown): parsed is ConsentFault {
  return typeof parsed === "object" && parsed !== null && "reason" in parsed;
}

/** Words for a basis that the console shows, and that people therefore write into a file. */
const BASIS_SYNONYMS: Readonly<Record<string, string>> = {
  opted_in: "opt_in",
  wrote_first: "dm_first",
  no_consent: "none",
};

/** Reads the word of a consent. `Opt-In`, `opt in` and `opt_in` are the same word. */
function parseWord<Word extends string>(
  given: GivenConsent,
  member: Subject,
  words: readonly Word[],
): Word | ConsentFault | undefined {
  const raw = given(member)?.trim() ?? "";
  if (raw === "") return undefined;
  const wanted = raw.toLowerCase().replace(/[\s_-]+/g, "_");
  const meant = member === "basis" && Object.hasOwn(BASIS_SYNONYMS, wanted) ? BASIS_SYNONYMS[wanted] : wanted;
  const word = words.find((one) => one === meant);
  if (word !== undefined) return word;
  return {
    member,
    reason: `${member} must be ${EITHER.format(words)}; got ${JSON.stringify(shortened(raw, WORD_CHARS_SHOWN))}`,
  };
}

/** Matches a text that begins like a URL. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/|^https?:/i;

function parseSource(text: string): Parsed {
  if (text.length > CONSENT_SOURCE_CHARS_MAX) return { fault: `has more than ${CONSENT_SOURCE_CHARS_MAX} characters` };
  if (!ADDRESS.test(text)) return text;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return { fault: "is no http or https address" };
  if (url.username !== "" || url.password !== "") return { fault: "has a user name or a password in its address" };
  return text;
}

function parseFor(text: string): Parsed {
  return text.length > CONSENT_FOR_CHARS_MAX ? { fault: `has more than ${CONSENT_FOR_CHARS_MAX} characters` } : text;
}

function parseWording(text: string): Parsed {
  return text.length > CONSENT_TEXT_CHARS_MAX ? { fault: `has more than ${CONSENT_TEXT_CHARS_MAX} characters` } : text;
}
