import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import {
  basis as basisSchema,
  skipReason,
  type Basis,
  type Recipient,
  type SkipReason,
} from "../../events/outreach.ts";
import { outreachByCampaign } from "../../projections/contact-outreach-by-campaign.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { toRecipient, type Contact, type ContactStatus } from "../../projections/contact-state.ts";
import { findTracked } from "../../projections/message-outcomes-and-reactions.ts";
import { peopleAt, type People } from "../../projections/rewind-contacts.ts";
import { linksOf, toLinkKey } from "../../projections/link-keys-and-text-links.ts";
import { effectiveBasis, findGrounds } from "../history/causes-and-effects.ts";
import { describeConsent, SKIPS } from "../history/sentences/outreach.ts";
import { eventsAt } from "../log/event-log.ts";
import { hideCodes } from "../networks/hide-personal-codes.ts";
import { formatDuration, grouped } from "../platform/format-numbers-and-lists.ts";
import { createSortedPage, type ListPage, type SortPlace } from "../platform/sorted-page.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { MomentFolding } from "../projector/operation-states-as-of.ts";
import type { PageMoment, ReadMoment } from "../projector/moment-of-console-page.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";

/**
 * Status by which pages filter contacts. A suppressed contact has the status `suppressed` there, and one on hold
 * `held`, whatever its outreach is.
 */
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

/**
 * How the log came to know a contact: from a list, from a message to us, or otherwise, as by a run (`met`). A contact
 * may be imported and have written first.
 */
export const ORIGINS = ["imported", "wrote_first", "met"] as const;
export type Origin = (typeof ORIGINS)[number];

export interface PeopleFilter {
  /** Text that the operator searches for: part of a handle or name, or an id. */
  readonly search?: string | undefined;
  readonly status?: ShownStatus | undefined;
  readonly basis?: Basis | undefined;
  readonly skipped?: SkipReason | undefined;
  readonly variant?: string | undefined;
  readonly source?: Origin | undefined;
}

export const PEOPLE_COLUMNS = ["person", "status", "basis", "skipped", "message"] as const;
export type PeopleColumn = (typeof PEOPLE_COLUMNS)[number];

/** Values by which the list of contacts is sorted. Statuses and bases sort in the order of SHOWN_STATUSES and BASES. */
const VALUES: Readonly<Record<PeopleColumn, (contact: Contact) => string>> = {
  person: ({ id = "", username }) => username?.toLowerCase() ?? id,
  status: (contact) => String(SHOWN_STATUSES.indexOf(toShownStatus(contact))),
  basis: (contact) => String(BASES.indexOf(effectiveBasis(contact))),
  skipped: (contact) => toShownSkips(contact)[0] ?? "",
  message: ({ attempted_at = "" }) => attempted_at,
};

function toShownStatus({ suppressed, held, status }: Contact): ShownStatus {
  if (suppressed) return "suppressed";
  return held ? "held" : status;
}

/** Returns the reasons of skips that pages show. Leaves out `already_contacted` if pages show the message itself. */
function toShownSkips({ skipped, attempted_at }: Contact): readonly SkipReason[] {
  return attempted_at === undefined ? skipped : skipped.filter((reason) => reason !== "already_contacted");
}

/** A contact in the form in which pages show it. */
export type ShownContact = ReturnType<typeof toShownContact>;

function toShownContact(contact: Contact) {
  const { id, username, name, attempted_at, seen_at, timezone, variant, received, replied, fields } = contact;
  return {
    id,
    username,
    name,
    status: toShownStatus(contact),
    basis: effectiveBasis(contact),
    origins: ORIGINS.filter((origin) => isFrom(contact, origin)),
    skipped: toShownSkips(contact),
    attempted_at,
    seen_at,
    timezone,
    variant,
    received,
    replied,
    fields,
    isSuppressed: contact.suppressed,
    isHeld: contact.held,
    /** Campaigns in which the message to the contact failed, so that an operator may allow a retry. */
    retries: contact.suppressed
      ? []
      : outreachByCampaign(contact)
          .filter(([, { status }]) => status === "failed")
          .map(([campaign]) => ({ campaign, isDefault: campaign === DEFAULT_CAMPAIGN })),
  };
}

/**
 * One page of the contacts that match a filter. `counts` has the number of contacts in each status, by the filter
 * without its status.
 */
export interface FoundPeople {
  /**
   * Variants of the message from which the filter can choose: those of the contacts' last messages, and the chosen one;
   * in alphabetical order.
   */
  readonly variants: readonly string[];
  readonly counts: Readonly<Record<ShownStatus, number>>;
  readonly page: readonly ShownContact[];
  /** Place in the sorted list after which the next page begins. Undefined on the last page. */
  readonly next: SortPlace | undefined;
}

/** Number of contacts that {@link findPeople} looks at in one step, which takes some tenths of a millisecond. */
const STEP_PEOPLE = 1_024;

/**
 * Reads a page of contacts, and counts all that match. Throws {@link MomentFolding} if the projections no longer hold
 * the moment.
 */
export async function readPeople(
  moment: PageMoment<"contacts">,
  filter: PeopleFilter,
  page: ListPage<PeopleColumn>,
): Promise<FoundPeople & { readonly known: number }> {
  const then = moment.asOf === undefined ? undefined : peopleAt(() => moment.stateNow("contacts"), moment.position);
  const isOfNow = moment.hasNow("contacts");
  const people = () => {
    if (!isOfNow) return moment.state("contacts").people;
    // An import during the search may have dropped the older values of contacts that the moment needs.
    if (!moment.hasNow("contacts")) throw new MomentFolding(moment.position);
    return then ?? moment.stateNow("contacts").people;
  };
  const found = await inTimeSlices(findPeople(people, filter, page));
  return { ...found, known: people().size };
}

/**
 * Finds the contacts that match, step by step. Contacts may change or be erased between steps, so it collects their
 * keys and reads the contacts at the end.
 */
export function* findPeople(
  people: () => People,
  { status, ...filter }: PeopleFilter,
  listed: ListPage<PeopleColumn>,
): Generator<void, FoundPeople, void> {
  const counts = { open: 0, attempted: 0, in_doubt: 0, sent: 0, failed: 0, suppressed: 0, held: 0 };
  const fits = createTest(filter);
  const valueIn = VALUES[listed.sort.by];
  const sorted = createSortedPage(listed);
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
  const page = keys.flatMap((key) => present.get(key) ?? []).map(toShownContact);
  return { variants: [...variants].sort(), counts, page, next };
}

/** Creates a function that tests a contact against all parts of the filter except the status. */
function createTest({ search = "", basis, skipped, variant, source }: PeopleFilter): (contact: Contact) => boolean {
  const wanted = search.replace(/^@/, "");
  // A regular expression ignores case without a copy in lower case, which for 50,000 contacts would take as long as the
  // whole page.
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

/** True if the contact has the origin. An imported contact may have written first too. */
function isFrom({ listed, inbound }: Contact, source: Origin): boolean {
  if (source === "imported") return listed;
  return source === "wrote_first" ? inbound : !listed && !inbound;
}

/** Number of events on one page about a recipient; most recipients have fewer. */
const EVENTS_SHOWN = 200;

/**
 * Number of newest reads of the recipient's data that a page shows. Each day on which callers use the console adds
 * some.
 */
const READS_SHOWN = 20;

type RecipientMoment = PageMoment<"contacts" | "referrers" | "results" | "suspected">;

/** Data of the console's page about one recipient. */
export type RecipientPage = Extract<Awaited<ReturnType<typeof readRecipient>>, { readonly known: "named" }>;

/**
 * Reads the data of the page about the recipient `asked`, an id or a handle, with the newest events before a position.
 * `hashed`: the log has only a hash of that name; `unknown`: it has nothing.
 */
export async function readRecipient(
  moment: RecipientMoment,
  asked: string,
  { hashesOf, before }: { readonly hashesOf: HashesOf; readonly before: number | undefined },
) {
  const contacts = moment.state("contacts");
  const names = { id: asked, username: asked.replace(/^@/, "") };
  const contact = findContact(contacts, { id: names.id }) ?? findContact(contacts, { username: names.username });
  if (contact === undefined) {
    const isHashed = hashesOf(names).some((name) => contacts.hashes.has(name));
    return { known: isHashed ? ("hashed" as const) : ("unknown" as const) };
  }
  const positions = contact.positions.filter((position) => before === undefined || position < before);
  const shown = positions.slice(-EVENTS_SHOWN);
  const events = await readNewestFirst(moment, shown);
  const { reads = [] } = contact;
  const attempts = events.filter((event): event is Attempt => event.type === "DirectMessageAttempted");
  return {
    known: "named" as const,
    recipient: toRecipient(contact),
    contact: toShownContact(contact),
    consent: describeConsent(contact),
    /** The event that gives the right to write to the recipient, such as their consent. */
    grounds: findGrounds(effectiveBasis(contact), events),
    events,
    /** Number of events older than those shown, and the position before which the next page begins. */
    older: { count: positions.length - shown.length, before: shown[0] },
    messages: attempts.map((attempt) => ({
      attempt: hideCodes(attempt),
      outcome: describeOutcome(attempt, events),
      trackedClicks: describeTrackedClicks(moment, attempt),
    })),
    links: listSentLinks(moment, contact, attempts.map(hideCodes), events),
    reads: await readNewestFirst(moment, reads.slice(-READS_SHOWN)),
    readCount: reads.length,
  };
}

type Attempt = Recorded<"DirectMessageAttempted">;

/** Describes the reason of a skip, such as `cannot receive messages from us`. */
export function describeSkip(reason: SkipReason): string {
  return SKIPS[reason];
}

/** Returns the handle that a recipient has now. Undefined if it is not known, or the recipients are not folded yet. */
export function findKnownHandle(moment: ReadMoment, recipient: Recipient): string | undefined {
  return moment.hasNow("contacts") ? findContact(moment.stateNow("contacts"), recipient)?.username : undefined;
}

async function readNewestFirst({ store }: PageMoment, positions: readonly number[]): Promise<readonly Recorded[]> {
  return (await Array.fromAsync(eventsAt(store, positions))).toReversed();
}

/** Describes the outcome of a message in words. `events`: those about the recipient, newest first. */
function describeOutcome({ data: { attempt_id } }: Attempt, events: readonly Recorded[]): string {
  const last = events.find(({ data }) => "attempt_id" in data && data.attempt_id === attempt_id);
  switch (last?.type) {
    case "DirectMessageSent":
      return "sent";
    case "DirectMessageFailed":
      return `failed, ${last.data.reason.replaceAll("_", " ")}`;
    case "DirectMessageInDoubt":
      return "in doubt";
    case "DirectMessageLeft":
      return "in doubt, and left so";
    default:
      return "its outcome is not known yet";
  }
}

/**
 * Describes a recipient's clicks on the links in a message that were made for them alone. Empty if it has none, or if
 * they do not permit tracking.
 */
function describeTrackedClicks(moment: PageMoment<"results">, { data }: Attempt): string {
  const tracked = findTracked(moment.state("results"), data);
  if (tracked === undefined) return "";
  const { clicks, suspected, first, sent } = tracked;
  const after =
    first === null ? "" : `, the first ${formatDuration(Math.round((first - sent) / 1_000))} after the message`;
  const more =
    suspected.length === 0 ? "" : `; ${grouped(suspected.length)} more may be X itself, and are not counted as theirs`;
  return `${grouped(clicks.length)} on links of their own${after}${more}`;
}

/**
 * Lists the links of the messages to a recipient. `isReplaced`: the recipient got a link of their own instead.
 * `clicks`: those of all recipients; undefined if only this recipient got the link and they do not permit tracking.
 */
function listSentLinks(
  moment: PageMoment<"referrers" | "suspected">,
  contact: Contact,
  attempts: readonly Attempt[],
  events: readonly Recorded[],
) {
  const sent = attempts.filter((attempt) => describeOutcome(attempt, events) === "sent");
  const isTracked = contact.tracking.status === "granted";
  const isReplacedIn = ({ data: { replaced_links = [] } }: Attempt, link: string) =>
    replaced_links.some((one) => toLinkKey(one) === link);
  return [...new Set(sent.flatMap(({ data }) => linksOf(data)))].map((link) => {
    const messages = moment.state("referrers").links.get(link)?.messages ?? 0;
    const { clicks = 0, bots = 0, suspected = 0 } = moment.state("suspected").links.get(link) ?? {};
    const isShown = messages !== 1 || isTracked;
    const isReplaced = sent.every((attempt) => !linksOf(attempt.data).includes(link) || isReplacedIn(attempt, link));
    return {
      link,
      isReplaced,
      messages,
      clicks: isShown ? { people: clicks - suspected, suspected, bots } : undefined,
    };
  });
}
