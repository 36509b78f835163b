import type { PagedSource } from "../../../events/outreach.ts";
import { cursorOf } from "../../../projections/recipient-source-cursors.ts";
import { type PageRequest, SocialError, type UserPage } from "../../networks/network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Batch, Reader, RunContext, Source } from "../run-context.ts";

type PageRead = UserPage & { readonly newest?: string };

export interface PagedOptions {
  readonly name: PagedSource;
  /** Returns the query, list or account that the source reads. The log keeps a separate cursor for each. */
  readonly scope: (run: RunContext) => string;
  /**
   * Reads a page of the network's list; with `since`, only newer entries if the network can. `newest`: the page's
   * newest entry, if that is a post and not a recipient. Throws SocialError.
   */
  readonly read: (run: RunContext, token: string, page: PageRequest & { readonly since?: string }) => Promise<PageRead>;
}

/**
 * Creates a source that reads a list of the network page by page, newest first. A run resumes a pass through the list
 * that an earlier run left unfinished; after a complete pass, the next one reads only newer entries.
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

/**
 * Creates the progress of a pass through a network's list. `next`: the cursor of the next page; undefined at the first.
 */
function beginPass(next: string | undefined, since: readonly string[]) {
  return {
    next,
    /**
     * Newest entries that earlier passes through the list found, those of the last pass first. A pass ends at the first
     * such entry that it meets.
     */
    since,
    follow: guardCursors(next),
    /** True if the network refused the stored cursor, so that the pass began again at the newest page. */
    isRestarted: false,
  };
}

/**
 * Reads the next page of a pass; undefined if the network refused the cursor of an earlier run. If the pass has already
 * begun again, its cursor is new, and a refusal is thrown, because the network charges for each new beginning.
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
 * True if the page holds a recipient with which an earlier pass began, so the rest is known. Other known contacts prove
 * nothing: an imported one may have followed us only since. A search asks only for newer posts, so it needs no such
 * entry.
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
 * Returns the entry at which the next pass will end: the first recipient of this page or, in a search, the newest post
 * of the first page.
 */
function findNewest({ users, newest }: PageRead, { next }: Pass): string | undefined {
  if (newest === undefined) return users[0]?.id;
  return next === undefined ? newest : undefined;
}

/**
 * Number of empty pages in a row at which the reading of a list ends. X may remove all entries of a page and still
 * return a cursor.
 */
export const EMPTY_PAGES_MAX = 5;

/**
 * Creates a function that returns the cursor of the next page. Undefined at the list's end, if a cursor repeats, or
 * after too many empty pages, since each page costs money. `from`: the first cursor, undefined for the newest page.
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
