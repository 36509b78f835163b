import { basis as basisSchema, skipReason, type Basis, type SkipReason } from "../../events/outreach.ts";
import type { Contact, ContactStatus } from "../../projections/contacts.ts";
import type { People } from "../../projections/rewind-contacts.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { createSortedPage, type Sort, type SortPlace } from "./sorted-page.ts";
import { readChoice, readText, type View } from "./page-context.ts";

/** Statuses that contacts are filtered by. `suppressed` and `held` take precedence over all others. */
export type ShownStatus = ContactStatus | "suppressed" | "held";

export const SHOWN_STATUSES = [
  "open",
  "attempted",
  "in_doubt",
  "sent",
  "failed",
  "suppressed",
  "held",
] as const satisfies readonly ShownStatus[];

export const BASES = basisSchema.anyOf.map((one) => one.const);

export const SKIP_REASONS = skipReason.anyOf.map((one) => one.const);

/** The sources of contacts. A contact may be of both of the first two. */
export const ORIGINS = ["imported", "wrote_first", "met"] as const;
export type Origin = (typeof ORIGINS)[number];

export interface PeopleFilter {
  /** Part of a handle or name, or an id. */
  readonly search?: string;
  readonly status?: ShownStatus;
  readonly basis?: Basis;
  readonly skipped?: SkipReason;
  readonly variant?: string;
  readonly source?: Origin;
}

/** Reads the filter from the page's address. */
export function parseFilter(view: View): PeopleFilter {
  return omitUndefined({
    search: readText(view, "search"),
    status: readChoice(view, "status", SHOWN_STATUSES),
    basis: readChoice(view, "basis", BASES),
    skipped: readChoice(view, "skipped", SKIP_REASONS),
    variant: readText(view, "variant"),
    source: readChoice(view, "source", ORIGINS),
  });
}

export const PEOPLE_COLUMNS = ["person", "status", "basis", "skipped", "message"] as const;
export type PeopleColumn = (typeof PEOPLE_COLUMNS)[number];

/** The values that contacts are sorted by: statuses and bases in the order of their lists above. */
const VALUES: Readonly<Record<PeopleColumn, (contact: Contact) => string>> = {
  person: ({ id = "", username }) => username?.toLowerCase() ?? id,
  status: (contact) => String(SHOWN_STATUSES.indexOf(toShownStatus(contact))),
  basis: (contact) => String(BASES.indexOf(effectiveBasis(contact))),
  skipped: ({ skipped }) => skipped[0] ?? "",
  message: ({ attempted_at = "" }) => attempted_at,
};

export function toShownStatus({ suppressed, held, status }: Contact): ShownStatus {
  if (suppressed) return "suppressed";
  return held ? "held" : status;
}

/** Counts by status of all contacts that match the rest of the filter, and one page of those that match all of it. */
export interface FoundPeople {
  /**
   * The variants of all contacts' newest messages, whether they match or not, and the one in the filter; in
   * alphabetical order.
   */
  readonly variants: readonly string[];
  readonly counts: Readonly<Record<ShownStatus, number>>;
  readonly page: readonly Contact[];
  /** The last place of the page. Undefined if no contacts follow. */
  readonly next: SortPlace | undefined;
}

export interface PageOfPeople {
  readonly sort: Sort<PeopleColumn>;
  /** Undefined to begin with the first contact. */
  readonly after: SortPlace | undefined;
  readonly limit: number;
}

/** Contacts of one step of {@link findPeople}, which takes some tenths of a millisecond. */
const STEP_PEOPLE = 1_024;

/**
 * Looks at each contact once, in steps. Between steps contacts change, and some are forgotten, so it keeps keys and
 * looks the contacts up at the end.
 */
export function* findPeople(
  people: () => People,
  { status, ...filter }: PeopleFilter,
  { sort, after, limit }: PageOfPeople,
): Generator<void, FoundPeople, void> {
  const counts = { open: 0, attempted: 0, in_doubt: 0, sent: 0, failed: 0, suppressed: 0, held: 0 };
  const fits = createTest(filter);
  const valueIn = VALUES[sort.by];
  const sorted = createSortedPage(sort.order, after, limit);
  const variants = new Set(filter.variant === undefined ? [] : [filter.variant]);
  let looked = 0;
  for (const [key, contact] of people()) {
    if (++looked % STEP_PEOPLE === 0) yield;
    if (contact.variant !== undefined) variants.add(contact.variant);
    if (!fits(contact)) continue;
    const found = toShownStatus(contact);
    counts[found]++;
    if (status === undefined || status === found) sorted.add(valueIn(contact), key);
  }
  const { keys, next } = sorted.end();
  const present = people();
  return { variants: [...variants].sort(), counts, page: keys.flatMap((key) => present.get(key) ?? []), next };
}

/** Matches a contact against all of the filter except the status. */
function createTest({ search = "", basis, skipped, variant, source }: PeopleFilter): (contact: Contact) => boolean {
  const wanted = search.replace(/^@/, "");
  // A regular expression needs no lower-case copies, which for 50,000 contacts would take as long as the rest of the
  // page.
  const part = new RegExp(RegExp.escape(wanted), "iu");
  const isNamed = ({ id, username = "", name = "" }: Contact): boolean =>
    wanted === "" || id === wanted || part.test(username) || part.test(name);
  return (contact) =>
    (basis === undefined || effectiveBasis(contact) === basis) &&
    (skipped === undefined || contact.skipped.includes(skipped)) &&
    (variant === undefined || contact.variant === variant) &&
    (source === undefined || isFrom(contact, source)) &&
    isNamed(contact);
}

/** A contact who wrote first has agreed, even if an import says otherwise. */
export function effectiveBasis({ inbound, basis }: Contact): Basis {
  return inbound ? "dm_first" : basis;
}

/** True if the contact comes from the source. An imported contact may have written first too. */
export function isFrom({ listed, inbound }: Contact, source: Origin): boolean {
  if (source === "imported") return listed;
  return source === "wrote_first" ? inbound : !listed && !inbound;
}
