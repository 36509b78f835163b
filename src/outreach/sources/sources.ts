import { isTriedLast, toRecipient, type Contact } from "../../../projections/contacts.ts";
import type { OutreachConfig, RecipientSource } from "../../config/outreach.ts";
import { LOOKUP_BATCH, type Batch, type Source } from "../context.ts";
import { openOlderMessages } from "../inbox.ts";
import { pagedSource } from "./paged.ts";

type SourcesConfig = Pick<OutreachConfig, "sources" | "searchQuery" | "listId">;

const SOURCES: Readonly<Record<RecipientSource, (config: SourcesConfig) => Source>> = {
  list: listSource,
  inbound: inboundSource,
  followers: followersSource,
  search: ({ searchQuery }) => searchSource(required(searchQuery)),
  list_members: ({ listId }) => listMembersSource(required(listId)),
};

/** The configured sources in their order, between those of recipients who are tried once more. */
export function openSources(config: SourcesConfig): readonly Source[] {
  return [againSource(), ...config.sources.map((name) => SOURCES[name](config)), lastSource()];
}

/** The configuration is refused when a source lacks what it reads. */
function required(value: string | undefined): string {
  if (value === undefined) throw new Error("a source is configured without what it reads");
  return value;
}

/** Recipients that an earlier run could not write to yet; their own source is not read for them a second time. */
export function againSource(): Source {
  return contactsSource("again", (contact) => contact.again && !isTriedLast(contact));
}

/** Those of them that the network refused. They come after all other recipients, whatever source they are in. */
export function lastSource(): Source {
  return { ...contactsSource("last", isTriedLast), last: true };
}

/** The imported recipients, in the order of their first import. */
export function listSource(): Source {
  return contactsSource("list", ({ listed }) => listed);
}

/** Who wrote to us before we did to them: first those known, in the order in which they were read, then older ones. */
export function inboundSource(): Source {
  return {
    name: "inbound",
    paid: true,
    async *batches({ run, retry, wanted }) {
      const given = new Set<string>();
      const older = openOlderMessages(run, retry);
      for (let isLeft = true; !run.signal.aborted;) {
        const people = [...run.projector.state("contacts").people.values()]
          .filter(({ inbound, id }) => inbound && id !== undefined && !given.has(id))
          .slice(0, LOOKUP_BATCH);
        for (const { id = "" } of people) given.add(id);
        if (people.length > 0) yield toBatch(people);
        else if (!isLeft) return;
        else isLeft = await older.readPage(wanted());
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
function contactsSource(name: Source["name"], isMeant: (contact: Contact) => boolean): Source {
  return {
    name,
    paid: false,
    async *batches({ run }) {
      // A copy: what is recorded meanwhile changes the Map.
      const people = [...run.projector.state("contacts").people.values()].filter(isMeant);
      for (let at = 0; at < people.length; at += LOOKUP_BATCH) yield toBatch(people.slice(at, at + LOOKUP_BATCH));
    },
  };
}

function toBatch(people: readonly Contact[]): Batch {
  return { entries: people.map((contact) => ({ recipient: toRecipient(contact) })) };
}
