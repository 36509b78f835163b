import { findContact } from "../../projections/contact-identity.ts";
import type { Contact } from "../../projections/contact-state.ts";
import { splitLink } from "../../projections/normalize-link.ts";
import { findNumberedRun } from "../../projections/runs.ts";
import { linkKey, toLinkKey } from "../../projections/link-keys-and-text-links.ts";
import type { PageMoment } from "../projector/moment-of-console-page.ts";
import { EVENT_ID, findEventNear, toReading } from "./find-event.ts";
import { findRunStart } from "./find-run-events.ts";

/** Something that a search found: the searched text is its id, number or address, or a part of its name. */
export type SearchResult =
  | { readonly kind: "recipient"; readonly recipient: FoundRecipient }
  | { readonly kind: "link"; readonly link: string }
  | { readonly kind: "template"; readonly name: string }
  | { readonly kind: "campaign"; readonly name: string }
  | { readonly kind: "run"; readonly runId: string }
  | {
      readonly kind: "event";
      readonly position: number;
      /** Id of the event that was found; undefined if the searched text is its position. */
      readonly id: string | undefined;
    };

interface FoundRecipient {
  readonly id: string | undefined;
  readonly username: string | undefined;
  readonly name: string | undefined;
  /**
   * Status shown for the recipient: `suppressed`, or else that their reply is held for an operator, or else the status
   * of the last message.
   */
  readonly status: string;
  readonly variant: string | undefined;
  /** Time of the last message, ISO 8601. */
  readonly attemptedAt: string | undefined;
}

/** Results of one kind: the first ones, and the number of all. */
export interface SearchGroup {
  readonly kind: SearchResult["kind"];
  readonly total: number;
  readonly results: readonly SearchResult[];
}

interface FoundInLog {
  /**
   * Results of which the searched text is the whole id, number or address, not only a part. One number may be a
   * position, a run and a recipient's id at the same time.
   */
  readonly exact: readonly SearchResult[];
  /** All kinds that have results, in the order in which people look for them. */
  readonly groups: readonly SearchGroup[];
  /** The searched text in lower case, as it was compared with names. */
  readonly part: string;
}

type Searched = PageMoment<"campaigns" | "clicks" | "contacts" | "links" | "referrers" | "results" | "runs">;

/**
 * Searches the log: finds everything whose id, number or address is the text, and everything whose name contains it.
 * `most`: maximum number of results in each group.
 */
export async function searchLog(moment: Searched, wanted: string, most: number): Promise<FoundInLog> {
  const handle = /(?<!\w)@(\w+)/.exec(wanted)?.[1];
  const part = (handle ?? wanted).toLowerCase();
  const recipient = findRecipient(moment, wanted, handle);
  const run = await findRun(moment, part);
  const event = findPosition(moment, wanted) ?? (run === undefined ? await findById(moment, part) : undefined);
  const link = findLink(moment, wanted);
  const groups = [
    findPeople(moment, part, recipient, most),
    toGroup("run", run === undefined ? [] : [run], most),
    toGroup("campaign", findCampaigns(moment, part), most),
    toGroup("template", findTemplates(moment, part), most),
    findLinks(moment, part, link, most),
    toGroup("event", event === undefined ? [] : [event], most),
  ].filter(({ total }) => total > 0);
  const exact = [recipient, link, run, event].filter((one) => one !== undefined);
  return { exact, groups, part };
}

function toGroup(kind: SearchGroup["kind"], all: readonly SearchResult[], most: number): SearchGroup {
  return { kind, total: all.length, results: all.slice(0, most) };
}

function findRecipient(moment: Searched, wanted: string, handle = wanted): SearchResult | undefined {
  const contacts = moment.state("contacts");
  const contact = findContact(contacts, { id: wanted }) ?? findContact(contacts, { username: handle });
  return contact && toResult(contact);
}

function toResult(contact: Contact): SearchResult {
  const { id, username, name, variant, attempted_at: attemptedAt } = contact;
  const status = contact.suppressed ? "suppressed" : contact.held ? "reply held" : contact.status;
  return { kind: "recipient", recipient: { id, username, name, status, variant, attemptedAt } };
}

/** Finds recipients by a part of their handle or name. Those whose handle or name begins with the part come first. */
function findPeople(moment: Searched, part: string, exact: SearchResult | undefined, most: number): SearchGroup {
  const beginning: Contact[] = [];
  const others: Contact[] = [];
  let total = exact === undefined ? 0 : 1;
  const isExact = ({ id, username }: Contact): boolean =>
    exact?.kind === "recipient" && exact.recipient.id === id && exact.recipient.username === username;
  for (const contact of moment.state("contacts").people.values()) {
    const handle = contact.username?.toLowerCase() ?? "";
    const name = contact.name?.toLowerCase() ?? "";
    if ((!handle.includes(part) && !name.includes(part)) || isExact(contact)) continue;
    total++;
    const list = handle.startsWith(part) || name.startsWith(part) ? beginning : others;
    if (list.length < most) list.push(contact);
  }
  const results = [...(exact === undefined ? [] : [exact]), ...[...beginning, ...others].map(toResult)];
  return { kind: "recipient", total, results: results.slice(0, most) };
}

/** Finds a run by its id, or by its number with or without the word `run`. */
async function findRun(moment: Searched, part: string): Promise<SearchResult | undefined> {
  const number = /^(?:run )?#?(\d{1,9})$/.exec(part)?.[1];
  const numbered = number === undefined ? undefined : findNumberedRun(moment.state("runs"), Number(number));
  if (numbered !== undefined) return { kind: "run", runId: numbered };
  if (!EVENT_ID.test(part) || (await findRunStart(toReading(moment), part)) === undefined) return undefined;
  return { kind: "run", runId: part };
}

function findTemplates(moment: Searched, part: string): readonly SearchResult[] {
  const names = new Set(moment.state("results").templates.values());
  return [...names].filter((name) => name.toLowerCase().includes(part)).map((name) => ({ kind: "template", name }));
}

function findCampaigns(moment: Searched, part: string): readonly SearchResult[] {
  const names = [...moment.state("campaigns").named.keys()];
  return names.filter((name) => name.includes(part)).map((name) => ({ kind: "campaign", name }));
}

/** Finds a link by its address, with or without a scheme. */
function findLink(moment: Searched, wanted: string): SearchResult | undefined {
  if (splitLink(wanted).includes("")) return undefined;
  const link = toLinkKey(wanted);
  return listLinks(moment).has(link) ? { kind: "link", link } : undefined;
}

function findLinks(moment: Searched, part: string, exact: SearchResult | undefined, most: number): SearchGroup {
  const others = [...listLinks(moment)].filter((link) => link.toLowerCase().includes(part));
  const first = exact?.kind === "link" ? [exact.link] : [];
  const links = [...new Set([...first, ...others])];
  return { kind: "link", total: links.length, results: links.slice(0, most).map((link) => ({ kind: "link", link })) };
}

/** Lists the links that were clicked, that messages contain, or that operators added, each as `domain/code`. */
function listLinks(moment: Searched): ReadonlySet<string> {
  const added = [...moment.state("links").shared].map(([code, { domain }]) => linkKey(domain, code));
  return new Set([...moment.state("clicks").links.keys(), ...moment.state("referrers").links.keys(), ...added]);
}

function findPosition(moment: PageMoment, wanted: string): SearchResult | undefined {
  const position = /^\d{1,15}$/.test(wanted) ? Number(wanted) : 0;
  return position < 1 || position > moment.position ? undefined : { kind: "event", position, id: undefined };
}

async function findById(moment: PageMoment, id: string): Promise<SearchResult | undefined> {
  if (!EVENT_ID.test(id)) return undefined;
  const event = await findEventNear(toReading(moment), id);
  return event && { kind: "event", position: event.position, id };
}
