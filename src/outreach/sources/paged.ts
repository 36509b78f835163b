import type { PagedSource } from "../../../events/outreach.ts";
import { cursorOf } from "../../../projections/sources.ts";
import { type PageRequest, SocialError, type UserPage } from "../../networks/network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Batch, Reader, RunContext, Source } from "../context.ts";

type PageRead = UserPage & { readonly newest?: string };

export interface PagedOptions {
  readonly name: PagedSource;
  /** The query, list or account: the cursor is kept for each. */
  readonly scope: (run: RunContext) => string;
  /**
   * `since`: only what is newer, where the network can. `newest`: the newest entry of the page, where that is not its
   * first recipient. Throws SocialError.
   */
  readonly read: (run: RunContext, token: string, page: PageRequest & { readonly since?: string }) => Promise<PageRead>;
}

/**
 * A list of the network, newest first, a page at a time. A run resumes the pass that an earlier run left unfinished; after
 * a complete pass a later one reads only what is newer.
 */
export function pagedSource(options: PagedOptions): Source {
  return {
    name: options.name,
    async *batches(reader) {
      const scope = options.scope(reader.run);
      const { next, since } = cursorOf(reader.run.projector.state("sources"), options.name, scope);
      let pass = beginPass(next ?? undefined, since);
      while (!reader.run.signal.aborted) {
        const page = await readPage(options, reader, pass);
        if (page === undefined) {
          pass = { ...beginPass(undefined, []), isRestarted: true };
          continue;
        }
        const behind = pass.follow(page.users.length, page.next);
        const following = isKnownFrom(page, pass) ? undefined : behind;
        yield toBatch(options.name, scope, pass, page, following);
        if (following === undefined) return;
        pass = { ...pass, next: following };
      }
    },
  };
}

type Pass = ReturnType<typeof beginPass>;

/** Where a pass stands. `next` undefined: at its first page. */
function beginPass(next: string | undefined, since: readonly string[]) {
  return {
    next,
    /** Newest entries of earlier passes, the last one's first. */
    since,
    follow: guardCursors(next),
    /** Restarted from the newest page, since the network no longer took the cursor. */
    isRestarted: false,
  };
}

/**
 * Undefined: the network refused the cursor because it is old. A restarted pass got its cursor from the network just now,
 * so age is not the reason: starting over each time would cost money for ever.
 */
async function readPage(
  { read }: PagedOptions,
  { run, retry, wanted }: Reader,
  { next, since: [since], isRestarted }: Pass,
): Promise<PageRead | undefined> {
  const page = { limit: wanted(), ...omitUndefined({ cursor: next, since }) };
  try {
    return await retry(() => run.credentials.use((token) => read(run, token, page)));
  } catch (fault) {
    const hasCursor = next !== undefined || since !== undefined;
    if (hasCursor && !isRestarted && fault instanceof SocialError && fault.kind === "rejected") return undefined;
    throw fault;
  }
}

/**
 * True if the page reaches the beginning of an earlier pass, or that of one of its pages, since recipients leave the list.
 * A known contact proves nothing: an imported one may have followed us since. Where the network itself reads only what
 * is newer, it ends the list.
 */
function isKnownFrom({ users, newest }: PageRead, { since }: Pass): boolean {
  return newest === undefined && users.some(({ id }) => since.includes(id));
}

function toBatch(source: PagedSource, scope: string, pass: Pass, page: PageRead, next: string | undefined): Batch {
  const cursors = omitUndefined({ from: pass.next, next, newest: findNewest(page, pass) });
  return {
    entries: page.users.map((user) => ({ recipient: { id: user.id, username: user.username }, user })),
    read: { source, scope, people: page.users.length, ...cursors },
  };
}

/** What a later pass reads down to: a recipient of this page; of a search one post for all, which is the first page's. */
function findNewest({ users, newest }: PageRead, { next }: Pass): string | undefined {
  if (newest === undefined) return users[0]?.id;
  return next === undefined ? newest : undefined;
}

/** Pages without an entry that are followed one after the other: X may filter a page after it has cut it. */
export const EMPTY_PAGES_MAX = 5;

/**
 * Watches one read of a long list: a network may give the same cursors again and again, each page for money. `from`: the
 * cursor with which the read begins; undefined: at the top. The function answers the cursor to go on with behind a page of
 * so many entries; undefined: here the read ends.
 */
export function guardCursors(from: string | undefined) {
  const seen = new Set([from]);
  let emptyInARow = 0;
  return (entries: number, next: string | undefined): string | undefined => {
    if (next === undefined) return undefined;
    emptyInARow = entries === 0 ? emptyInARow + 1 : 0;
    const isRepeated = seen.has(next);
    seen.add(next);
    return isRepeated || emptyInARow >= EMPTY_PAGES_MAX ? undefined : next;
  };
}
