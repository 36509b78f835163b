import { Type } from "@sinclair/typebox";
import { audienceSource, type Audience } from "../../../events/campaign.ts";
import { basis } from "../../../events/outreach.ts";
import { hasAnswered, outreachIn } from "../../../projections/contact-outreach-by-campaign.ts";
import type { Contact } from "../../../projections/contact-state.ts";
import { codeIn, type Links } from "../../../projections/links.ts";
import { DAY_MS, msOf } from "../../../projections/parse-log-times.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { cleanValue, fieldName } from "../../template/normalize-field.ts";

/** Value of the condition `clicked` that any link of the recipient's own meets. */
export const ANY_LINK = "any";

const DAYS_MAX = 3_650;

/** The audience as members of an operation's input, which are the same in JSON, on the command line and in forms. */
export const audienceInput = {
  source: Type.Optional(
    Type.Union(audienceSource.anyOf, {
      title: "name",
      description: "Only recipients on your list (list), or those who wrote to the account (inbound)",
    }),
  ),
  basis: Type.Optional(Type.Union(basis.anyOf, { title: "basis", description: "Only recipients with this basis" })),
  fields: Type.Optional(
    Type.Array(Type.String({ title: "condition", maxLength: 500, examples: ["city=Berlin|Hamburg"] }), {
      minItems: 1,
      maxItems: 20,
      description: "Condition on a field of the list: city=Berlin, city=Berlin|Hamburg, or city (it is set)",
    }),
  ),
  timezones: Type.Optional(
    Type.Array(Type.String({ title: "zone", maxLength: 64, examples: ["Europe/Berlin"] }), {
      minItems: 1,
      maxItems: 50,
      description: "Only recipients in this time zone, or in one of several",
    }),
  ),
  clicked: Type.Optional(
    Type.String({
      title: "link",
      minLength: 1,
      maxLength: 500,
      description: `Only recipients who granted tracking and clicked this link; ${ANY_LINK}: any of their own`,
      examples: [ANY_LINK],
    }),
  ),
  messaged: Type.Optional(
    Type.String({
      title: "campaign",
      maxLength: 40,
      description: "Only recipients who got a message of this campaign and did not reply",
      examples: ["default"],
    }),
  ),
  days: Type.Optional(
    Type.Integer({
      title: "number",
      minimum: 1,
      maximum: DAYS_MAX,
      description: "With messaged: that many days ago at least",
    }),
  ),
  replied: Type.Optional(Type.Literal(true, { description: "With messaged: only recipients who replied to it" })),
  failed: Type.Optional(Type.Literal(true, { description: "With messaged: only recipients whose message failed" })),
};

/** Reason for which an audience leaves out a recipient: the first condition that does not hold. */
export const LEFT_OUT_REASONS = [
  "other_source",
  "other_basis",
  "other_field",
  "other_timezone",
  "tracking_not_granted",
  "not_clicked",
  "not_messaged",
  "not_failed",
  "replied",
  "not_replied",
  "messaged_recently",
] as const;
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number];

/**
 * Result of testing if a recipient belongs to an audience. `from`: time from which they will belong to it, ISO 8601, if
 * only days are missing.
 */
export type AudienceMatch =
  { readonly matches: true } | { readonly matches: false; readonly reason: LeftOutReason; readonly from?: string };

/** Judges if a recipient, unknown to the log without `contact`, belongs to an audience. `now`: ms since 1970. Pure. */
export function matchesAudience(
  audience: Audience,
  contact: Contact | undefined,
  { links }: { readonly links: Links },
  now: number,
): AudienceMatch {
  const out = (reason: LeftOutReason): AudienceMatch => ({ matches: false, reason });
  if (audience.source !== undefined && !isFrom(contact, audience.source)) return out("other_source");
  if (audience.basis !== undefined && audience.basis !== (contact?.basis ?? "none")) return out("other_basis");
  if (audience.fields !== undefined && !hasFields(contact, audience.fields)) return out("other_field");
  const { timezone = "" } = contact ?? {};
  if (audience.timezones?.includes(timezone) === false) return out("other_timezone");
  if (audience.clicked !== undefined) {
    if (contact?.tracking.status !== "granted") return out("tracking_not_granted");
    if (!hasClicked(contact.clicked ?? [], audience.clicked, links)) return out("not_clicked");
  }
  return audience.messaged === undefined ? { matches: true } : matchesOutreach(audience, contact, now);
}

function isFrom(contact: Contact | undefined, source: NonNullable<Audience["source"]>): boolean {
  return (source === "list" ? contact?.listed : contact?.inbound) === true;
}

function matchesOutreach(
  { messaged, days = 0, replied, failed }: Audience,
  contact: Contact | undefined,
  now: number,
): AudienceMatch {
  const out = (reason: LeftOutReason): AudienceMatch => ({ matches: false, reason });
  const outreach = outreachIn(contact, messaged);
  const wanted = failed === true ? "failed" : "sent";
  if (contact === undefined || outreach?.status !== wanted) return out(failed === true ? "not_failed" : "not_messaged");
  const hasReplied = hasAnswered(contact, outreach);
  if (hasReplied !== (replied === true)) return out(hasReplied ? "replied" : "not_replied");
  const from = msOf(outreach.attempted_at ?? isoTime(0)) + days * DAY_MS;
  return from <= now ? { matches: true } : { matches: false, reason: "messaged_recently", from: isoTime(from) };
}

/** Parts of a condition on a field. Without `values`, the field must only be set. */
export function parseFieldCondition(condition: string) {
  const at = condition.indexOf("=");
  if (at === -1) return { field: fieldName(condition), values: undefined };
  const values = condition.slice(at + 1).split("|");
  return { field: fieldName(condition.slice(0, at)), values: values.map((value) => value.trim()) };
}

/**
 * Cache of the parsed conditions, because an audience is counted by testing each recipient with the same conditions.
 */
const parsedConditions = new WeakMap<
  readonly string[],
  readonly { readonly field: string; readonly values: ReadonlySet<string> | undefined }[]
>();

function hasFields(contact: Contact | undefined, conditions: readonly string[]): boolean {
  const parsed = parsedConditions.getOrInsertComputed(conditions, () =>
    conditions.map(parseFieldCondition).map(({ field, values }) => ({ field, values: values && new Set(values) })),
  );
  const { fields = {} } = contact ?? {};
  const names = Object.keys(fields);
  return parsed.every(({ field, values }) => {
    const found = names.find((name) => fieldName(name) === field);
    const value = cleanValue(found === undefined ? "" : fields[found]!);
    return value !== undefined && (values?.has(value) ?? true);
  });
}

function hasClicked(clicked: readonly string[], wanted: string, { personal }: Links): boolean {
  if (wanted === ANY_LINK) return clicked.length > 0;
  return clicked.some((code) => personal.get(code)?.code === codeIn(wanted));
}

/**
 * True if the audience makes its campaign a follow-up, which recipients no longer get once they have replied to an
 * earlier message.
 */
export function isFollowUp({ messaged, replied }: Audience): boolean {
  return messaged !== undefined && replied !== true;
}

/** Returns the audience that an input describes; undefined if it has no member of one. */
export function readAudience(given: Audience): Audience | undefined {
  const members = Object.keys(audienceInput) as (keyof Audience)[];
  const found = Object.fromEntries(
    members.flatMap((member) => (given[member] === undefined ? [] : [[member, given[member]]])),
  );
  return Object.keys(found).length === 0 ? undefined : found;
}
