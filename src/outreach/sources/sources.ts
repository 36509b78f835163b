import { isTriedLast, toRecipient, type Contact } from "../../../projections/contacts.ts";
import type { PagedSource, RecipientSource } from "../../../events/outreach.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import { LOOKUP_BATCH, type Batch, type Source } from "../context.ts";
import { openOlderMessages } from "../inbox.ts";
import { pagedSource, type PagedOptions } from "./paged.ts";

/** What the network's lists are read by. */
type ListSettings = { readonly [Setting in "searchQuery" | "listId"]?: string | undefined };

interface SourceKind {
  /** Whether reading on costs money: then nothing is read that the day has no place for. */
  readonly isPaid: boolean;
  /** Whether a contact is one of its recipients; undefined: only the network knows them. */
  readonly isKnown?: (contact: Contact) => boolean;
}

/** What has to be known of a source beside its recipients. */
export const SOURCE_KINDS: Readonly<Record<Source["name"], SourceKind>> = {
  /** Recipients that an earlier run could not write to yet; their own source is not read for them a second time. */
  again: { isPaid: false, isKnown: (contact) => contact.again && !isTriedLast(contact) },
  /** The imported recipients, in the order of their first import. */
  list: { isPaid: false, isKnown: ({ listed }) => listed },
  inbound: { isPaid: true, isKnown: ({ inbound, id }) => inbound && id !== undefined },
  followers: { isPaid: true },
  search: { isPaid: true },
  list_members: { isPaid: true },
  /** Those of `again` that the network refused. They come after all other recipients, whatever source they are in. */
  last: { isPaid: false, isKnown: isTriedLast },
};

/** Where a source finds recipients; undefined: it tries again those that another source had found. */
export function namedSource(name: Source["name"]): RecipientSource | undefined {
  return name === "again" || name === "last" ? undefined : name;
}

/** Lists of the network. A configuration in which a source lacks what it reads is refused. */
const PAGED: Readonly<Record<PagedSource, (config: ListSettings) => Omit<PagedOptions, "name">>> = {
  /** Those who follow the account of the run. */
  followers: () => ({ scope: ownId, read: (run, token, page) => run.network.followers(token, ownId(run), page) }),
  /** Authors of recent posts that match a query. */
  search: ({ searchQuery: query = "" }) => ({
    scope: () => query,
    read: ({ network }, token, page) => network.searchAuthors(token, query, page),
  }),
  /** The members of one of the network's own lists. */
  list_members: ({ listId = "" }) => ({
    scope: () => listId,
    read: ({ network }, token, page) => network.listMembers(token, listId, page),
  }),
};

/** The configured sources in their order, between those of recipients who are tried once more. */
export function openSources(config: Pick<OutreachConfig, "sources" | keyof ListSettings>): readonly Source[] {
  return (["again", ...config.sources, "last"] as const).map((name) => openSource(name, config));
}

export function openSource(name: Source["name"], config: ListSettings = {}): Source {
  if (name === "inbound") return inboundSource();
  if (name === "again" || name === "list" || name === "last") return contactsSource(name);
  return pagedSource({ name, ...PAGED[name](config) });
}

/** Who wrote to us before we did to them: first those known, in the order in which they were read, then older ones. */
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

/** Who is known already, in the order in which they were met. */
function contactsSource(name: "again" | "list" | "last"): Source {
  return {
    name,
    async *batches({ run }) {
      // A copy: what is recorded meanwhile changes the Map.
      const people = [...run.projector.state("contacts").people.values()].filter(
        (contact) => SOURCE_KINDS[name].isKnown?.(contact) === true,
      );
      for (let at = 0; at < people.length; at += LOOKUP_BATCH) yield toBatch(people.slice(at, at + LOOKUP_BATCH));
    },
  };
}

function toBatch(people: readonly Contact[]): Batch {
  return { entries: people.map((contact) => ({ recipient: toRecipient(contact) })) };
}
