import type { PagedSource } from "../../../events/outreach.ts";
import { findContact, type Contacts } from "../../../projections/contacts.ts";
import { cursorOf } from "../../../projections/sources.ts";
import { SocialError, type Page, type UserPage } from "../../networks/network.ts";
import type { RunContext } from "../context.ts";
import type { Batch, Reader, Source } from "./source.ts";

/** What is asked of the network: a page, and only what is newer than `since` where it can tell. */
export type PageWanted = Page & { readonly since?: string };

export interface PagedOptions {
  readonly name: PagedSource;
  /** The query, list or account: the cursor is kept for each. */
  readonly scope: () => string;
  /** `newest`: the newest entry of the page, where that is not its first person. Throws SocialError. */
  readonly read: (run: RunContext, page: PageWanted) => Promise<UserPage & { readonly newest?: string }>;
}

/** Where a pass stands. */
interface Pass {
  readonly next: string | undefined;
  readonly since: string | undefined;
  readonly isFirstPage: boolean;
}

/**
 * People whom the network lists newest first, a page at a time. A pass that one run leaves unfinished is taken up by
 * the next where it stopped; once it came to its end, a later one reads only what is newer.
 */
export function pagedSource(options: PagedOptions): Source {
  return {
    name: options.name,
    paid: true,
    async *candidates(reader) {
      const scope = options.scope();
      const { next, since } = cursorOf(reader.run.projector.state("sources"), options.name, scope);
      let pass: Pass = { next: next ?? undefined, since: since ?? undefined, isFirstPage: next === null };
      for (;;) {
        const page = await readPage(options, reader, pass);
        // A cursor that the network no longer takes: the pass begins anew.
        if (page === undefined) {
          pass = { next: undefined, since: undefined, isFirstPage: true };
          continue;
        }
        const following = isKnownFrom(page, pass, reader.run.projector.state("contacts")) ? undefined : page.next;
        yield batchOf(options.name, scope, pass, page, following);
        if (following === undefined) return;
        pass = { ...pass, next: following, isFirstPage: false };
      }
    },
  };
}

type PageRead = Awaited<ReturnType<PagedOptions["read"]>>;

/** Undefined: the network refused the cursor, as it does with old ones. */
async function readPage(
  { read }: PagedOptions,
  { run, patience, wanted }: Reader,
  { next, since }: Pass,
): Promise<PageRead | undefined> {
  const page = {
    limit: wanted(),
    ...(next === undefined ? {} : { cursor: next }),
    ...(since === undefined ? {} : { since }),
  };
  try {
    return await patience(() => read(run, page));
  } catch (fault) {
    const hasCursor = next !== undefined || since !== undefined;
    if (hasCursor && fault instanceof SocialError && fault.kind === "rejected") return undefined;
    throw fault;
  }
}

/**
 * Whether the page reaches what the last whole pass began with: that person; or, since people leave, nobody but those
 * whom we know. Where the network itself reads only what is newer, it ends the list.
 */
function isKnownFrom({ users, newest }: PageRead, { since }: Pass, contacts: Contacts): boolean {
  if (since === undefined || newest !== undefined || users.length === 0) return false;
  return users.some(({ id }) => id === since) || users.every(({ id }) => findContact(contacts, { id }) !== undefined);
}

function batchOf(source: PagedSource, scope: string, pass: Pass, page: PageRead, next: string | undefined): Batch {
  const newest = pass.isFirstPage ? (page.newest ?? page.users[0]?.id) : undefined;
  return {
    candidates: page.users.map((user) => ({ who: { id: user.id, username: user.username }, user })),
    read: {
      source,
      scope,
      people: page.users.length,
      ...(next === undefined ? {} : { next }),
      ...(newest === undefined ? {} : { newest }),
    },
  };
}
