import { isTriedLast, newestAttempt, outreachIn } from "../../../projections/contact-outreach-by-campaign.ts";
import { toRecipient, type Contact } from "../../../projections/contact-state.ts";
import type { PagedSource, Recipient, RecipientSource } from "../../../events/outreach.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import { LOOKUP_BATCH, type Batch, type BatchEntry, type RunContext, type Source } from "../run-context.ts";
import { openOlderMessages } from "../read-and-record-inbox-messages.ts";
import { pagedSource, type PagedOptions } from "./paged-source.ts";

/** Settings that choose which lists of the network are read. */
type ListSettings = { readonly [Setting in "searchQuery" | "listId"]?: string | undefined };

interface SourceKind {
  /** True if the network charges for reading the source. A run then reads no more recipients than it may write to. */
  readonly isPaid: boolean;
  /** True if a known contact belongs to the source. Absent if only the network knows the source's recipients. */
  readonly isKnown?: (contact: Contact, campaign: string | undefined) => boolean;
}

/** Kind of each source of recipients: if it costs money, and which contacts belong to it. */
export const SOURCE_KINDS: Readonly<Record<Source["name"], SourceKind>> = {
  /**
   * Source `again`: recipients that an earlier run could not write to yet. The log names them, so their first source
   * need not be read again.
   */
  again: {
    isPaid: false,
    isKnown: (contact, campaign) => isReached(contact, campaign) && !isTriedLast(contact, campaign),
  },
  /** Source `list`: the imported recipients, in the order of their first import. */
  list: { isPaid: false, isKnown: ({ listed }) => listed },
  inbound: { isPaid: true, isKnown: ({ inbound, id }) => inbound && id !== undefined },
  followers: { isPaid: true },
  search: { isPaid: true },
  list_members: { isPaid: true },
  /**
   * Source `last`: recipients whose message from an earlier run the network refused. They get their turn after all
   * others.
   */
  last: { isPaid: false, isKnown: isTriedLast },
};

/**
 * True if the source `again` gives the recipient a turn in the campaign's run. For a campaign other than `default`,
 * which reads no list of the network, these are all recipients who got a message or whose consent is on record.
 */
function isReached(contact: Contact, campaign: string | undefined): boolean {
  if (outreachIn(contact, campaign)?.again === true) return true;
  if (campaign === undefined) return false;
  return newestAttempt(contact) !== undefined || contact.consent !== null || contact.consents_for !== undefined;
}

/** Source of a recipient's turn: a source of the run, or `requested` if a caller named the recipient. */
export interface TurnSource {
  readonly name: Source["name"] | "requested";
}

/**
 * Returns the source's name as events record it; undefined for `again`, `last` and `requested`, whose recipients come
 * from other sources.
 */
export function namedSource(name: TurnSource["name"]): RecipientSource | undefined {
  return name === "again" || name === "last" || name === "requested" ? undefined : name;
}

/**
 * Creates each source that reads a list of the network page by page. Its setting is never missing here: the
 * configuration is refused at start without it.
 */
const PAGED: Readonly<Record<PagedSource, (config: ListSettings) => Omit<PagedOptions, "name">>> = {
  /** Source `followers`: followers of the account that makes the run. */
  followers: () => ({ scope: ownId, read: (run, token, page) => run.network.followers(token, ownId(run), page) }),
  /** Source `search`: authors of recent posts that match the configured query. */
  search: ({ searchQuery: query = "" }) => ({
    scope: () => query,
    read: ({ network }, token, page) => network.searchAuthors(token, query, page),
  }),
  /** Source `list_members`: members of one of the network's own lists. */
  list_members: ({ listId = "" }) => ({
    scope: () => listId,
    read: ({ network }, token, page) => network.listMembers(token, listId, page),
  }),
};

/** Opens the configured sources in their order, after source `again` and before source `last`. */
export function openSources(config: OutreachConfig): readonly Source[] {
  return (["again", ...config.sources, "last"] as const).map((name) => openSource(name, config));
}

export function openSource(name: Source["name"], config: ListSettings = {}): Source {
  if (name === "inbound") return inboundSource();
  if (name === "again" || name === "list" || name === "last") return contactsSource(name);
  return pagedSource({ name, ...PAGED[name](config) });
}

/**
 * Creates the source of recipients who wrote to us first: those that the log knows, in the order in which it first
 * mentions them, then those found in older inbox messages.
 */
function inboundSource(): Source {
  return {
    name: "inbound",
    async *batches({ run, retry, wanted }) {
      const given = new Set<string>();
      const readOlder = openOlderMessages(run, retry);
      for (let isLeft = true; !run.signal.aborted;) {
        const people = [...run.projector.state("contacts").people.values()]
          .filter(({ inbound, id }) => inbound && id !== undefined && !given.has(id))
          .slice(0, LOOKUP_BATCH);
        for (const { id = "" } of people) given.add(id);
        if (people.length > 0) yield toBatch(people);
        else if (!isLeft) return;
        else isLeft = await readOlder(wanted());
      }
    },
  };
}

function ownId({ accountId = "" }: { readonly accountId: string | undefined }): string {
  return accountId;
}

/** Creates a source of recipients that the log knows, in the order in which the log first mentions them. */
function contactsSource(name: "again" | "list" | "last"): Source {
  return {
    name,
    async *batches({ run }) {
      // The list is copied, because events recorded during the run change the Map.
      const people = [...run.projector.state("contacts").people.values()].filter(
        (contact) => SOURCE_KINDS[name].isKnown?.(contact, run.rules.campaign) === true,
      );
      for (let at = 0; at < people.length; at += LOOKUP_BATCH) yield toBatch(people.slice(at, at + LOOKUP_BATCH));
    },
  };
}

function toBatch(people: readonly Contact[]): Batch {
  return { entries: people.map((contact) => ({ recipient: toRecipient(contact) })) };
}

export function toHandleKey({ username = "" }: Recipient): string {
  return username.toLowerCase();
}

/**
 * Looks up recipients whose profile the source did not give, with at most one request by id and one by handle. `user`
 * is undefined if the network does not know the recipient. Throws the network's SocialError.
 */
export async function lookUpUsers({ network, credentials }: RunContext, entries: readonly BatchEntry[]) {
  const asked = entries.filter(({ user }) => user === undefined).map(({ recipient }) => recipient);
  const ids = asked.flatMap(({ id }) => id ?? []);
  const handles = asked.flatMap(({ id, username }) => (id === undefined ? (username ?? []) : []));
  const found = [
    ...(ids.length === 0 ? [] : await credentials.use((token) => network.usersById(token, ids))),
    ...(handles.length === 0 ? [] : await credentials.use((token) => network.usersByUsername(token, handles))),
  ];
  const byId = new Map(found.map((user) => [user.id, user]));
  const byHandle = new Map(found.map((user) => [user.username.toLowerCase(), user]));
  return entries.map((entry) => {
    const { id, username = "" } = entry.recipient;
    const match = id === undefined ? byHandle.get(username.toLowerCase()) : byId.get(id);
    return { entry, user: entry.user ?? match };
  });
}
