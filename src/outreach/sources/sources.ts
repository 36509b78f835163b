import { isTriedLast, toRecipient, type Contact } from "../../../projections/contacts.ts";
import type { PagedSource, RecipientSource } from "../../../events/outreach.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import { LOOKUP_BATCH, type Batch, type Source } from "../context.ts";
import { openOlderMessages } from "../inbox.ts";
import { pagedSource, type PagedOptions } from "./paged.ts";

/** The settings by which the network's lists are read. */
type ListSettings = { readonly [Setting in "searchQuery" | "listId"]?: string | undefined };

interface SourceKind {
  /** True if reading costs money. Nothing is then read that the day has no place for. */
  readonly isPaid: boolean;
  /** True if a contact is one of its recipients; absent if only the network knows them. */
  readonly isKnown?: (contact: Contact) => boolean;
}

/** Facts about each source, other than its recipients. */
export const SOURCE_KINDS: Readonly<Record<Source["name"], SourceKind>> = {
  /** Recipients that an earlier run could not write to yet. Their first source is not read for them again. */
  again: { isPaid: false, isKnown: (contact) => contact.again && !isTriedLast(contact) },
  /** The imported recipients, in the order of their first import. */
  list: { isPaid: false, isKnown: ({ listed }) => listed },
  inbound: { isPaid: true, isKnown: ({ inbound, id }) => inbound && id !== undefined },
  followers: { isPaid: true },
  search: { isPaid: true },
  list_members: { isPaid: true },
  /** Recipients of `again` that the network refused. They come after all others, regardless of their source. */
  last: { isPaid: false, isKnown: isTriedLast },
};

/** Returns where a source finds recipients; undefined if it retries recipients that another source had found. */
export function namedSource(name: Source["name"]): RecipientSource | undefined {
  return name === "again" || name === "last" ? undefined : name;
}

/** Lists of the network. A configuration without the setting that a source needs is refused. */
const PAGED: Readonly<Record<PagedSource, (config: ListSettings) => Omit<PagedOptions, "name">>> = {
  /** Followers of the run's account. */
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

/** Opens the configured sources in their order, between the two sources of retried recipients. */
export function openSources(config: Pick<OutreachConfig, "sources" | keyof ListSettings>): readonly Source[] {
  return (["again", ...config.sources, "last"] as const).map((name) => openSource(name, config));
}

export function openSource(name: Source["name"], config: ListSettings = {}): Source {
  if (name === "inbound") return inboundSource();
  if (name === "again" || name === "list" || name === "last") return contactsSource(name);
  return pagedSource({ name, ...PAGED[name](config) });
}

/**
 * Recipients who wrote to us before we did to them: first the known ones, in the order in which they were read, then
 * older ones.
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

/** Known recipients, in the order in which they were met. */
function contactsSource(name: "again" | "list" | "last"): Source {
  return {
    name,
    async *batches({ run }) {
      // A copy, because events recorded meanwhile change the Map.
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
