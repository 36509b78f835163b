import type { PagedSource } from "../../../events/outreach.ts";
import { cursorOf } from "../../../projections/sources.ts";
import { type PageRequest, SocialError, type UserPage } from "../../networks/network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Batch, Reader, RunContext, Source } from "../context.ts";

type PageRead = UserPage & { readonly newest?: string };

export interface PagedOptions {
  readonly name: PagedSource;
  /** The query, list or account. The cursor is kept for each. */
  readonly scope: (run: RunContext) => string;
  /**
   * Reads a page, with `since` only newer entries if the network can do that. `newest` is the newest entry of the page,
   * if that is not its first recipient. Throws SocialError.
   */
  readonly read: (run: RunContext, token: string, page: PageRequest & { readonly since?: string }) => Promise<PageRead>;
}

/**
 * A list of the network, newest first, read page by page. A run resumes the pass that an earlier run left unfinished.
 * After a complete pass, a later one reads only newer entries.
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

/** The progress of a pass. `next` is undefined at its first page. */
function beginPass(next: string | undefined, since: readonly string[]) {
  return {
    next,
    /** Newest entries of earlier passes, those of the last pass first. */
    since,
    follow: guardCursors(next),
    /** Restarted from the newest page, because the network refused the cursor. */
    isRestarted: false,
  };
}

/**
 * Returns undefined if the network refused the cursor because it is old. A restarted pass has a new cursor, so age is
 * not the reason; restarting each time would cost money forever.
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
 * True if the page reaches the start of an earlier pass or of its pages; recipients leave the list. A known contact
 * proves nothing: an imported one may have followed us since. A network that reads only newer entries ends the list
 * itself.
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

/**
 * Returns the entry at which a later pass ends: a recipient of this page, or for a search the first page's newest post.
 */
function findNewest({ users, newest }: PageRead, { next }: Pass): string | undefined {
  if (newest === undefined) return users[0]?.id;
  return next === undefined ? newest : undefined;
}

/** Empty pages in a row that end a read. X may filter a page after it has cut it. */
export const EMPTY_PAGES_MAX = 5;

/**
 * Guards the read of a long list, because a network may repeat cursors, each page for money. `from` is the first
 * cursor, undefined at the top. Returns a function from a page's entries and cursor to the next cursor; undefined ends
 * the read.
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
