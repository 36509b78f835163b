import { isTriedLast, toRecipient, type Contact } from "../../../projections/contacts.ts";
import type { RecipientSource } from "../../../events/outreach.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import { LOOKUP_BATCH, type Batch, type Source } from "../context.ts";
import { openOlderMessages } from "../inbox.ts";
import { pagedSource } from "./paged.ts";

type SourcesConfig = Pick<OutreachConfig, "sources" | "searchQuery" | "listId">;

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

export const againSource = (): Source => contactsSource("again");
export const lastSource = (): Source => contactsSource("last");
export const listSource = (): Source => contactsSource("list");

/** A configuration in which a source lacks what it reads is refused. */
const SOURCES: Readonly<Record<RecipientSource, (config: SourcesConfig) => Source>> = {
  list: listSource,
  inbound: inboundSource,
  followers: followersSource,
  search: ({ searchQuery }) => searchSource(searchQuery!),
  list_members: ({ listId }) => listMembersSource(listId!),
};

/** The configured sources in their order, between those of recipients who are tried once more. */
export function openSources(config: SourcesConfig): readonly Source[] {
  return [againSource(), ...config.sources.map((name) => SOURCES[name](config)), lastSource()];
}

/** Who wrote to us before we did to them: first those known, in the order in which they were read, then older ones. */
export function inboundSource(): Source {
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

/** Those who follow the account of the run. */
export function followersSource(): Source {
  return pagedSource({
    name: "followers",
    scope: ownId,
    read: (run, token, page) => run.network.followers(token, ownId(run), page),
  });
}

function ownId({ accountId = "" }: { readonly accountId: string | undefined }): string {
  return accountId;
}

/** Authors of recent posts that match a query. */
export function searchSource(query: string): Source {
  return pagedSource({
    name: "search",
    scope: () => query,
    read: ({ network }, token, page) => network.searchAuthors(token, query, page),
  });
}

/** The members of one of the network's own lists. */
export function listMembersSource(listId: string): Source {
  return pagedSource({
    name: "list_members",
    scope: () => listId,
    read: ({ network }, token, page) => network.listMembers(token, listId, page),
  });
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
