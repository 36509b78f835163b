import type { PagedSource } from "../../../events/outreach.ts";
import { cursorOf } from "../../../projections/sources.ts";
import { type PageRequest, SocialError, type UserPage } from "../../networks/network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Batch, Reader, RunContext, Source } from "../context.ts";

type PageRead = UserPage & { readonly newest?: string };

export interface PagedOptions {
  readonly name: PagedSource;
  /** Query, list or account that the source reads. The log keeps one cursor for each. */
  readonly scope: (run: RunContext) => string;
  /**
   * Reads a page of the network's list; with `since`, only newer entries if the network can. `newest`: the page's
   * newest entry, if that is not its first recipient. Throws SocialError.
   */
  readonly read: (run: RunContext, token: string, page: PageRequest & { readonly since?: string }) => Promise<PageRead>;
}

/**
 * Creates a source of recipients from a list of the network, read page by page, newest first. A run resumes the pass
 * that an earlier run left unfinished; after a complete pass, a later one reads only newer entries.
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
     * Newest entries of earlier passes through the list, those of the last pass first. The pass ends where it meets
     * one.
     */
    since,
    follow: guardCursors(next),
    /** True if the network refused the stored cursor, so that the pass began again at the newest page. */
    isRestarted: false,
  };
}

/**
 * Reads the next page of a pass; undefined if the network refused an old cursor. After one restart the cursor is fresh,
 * so a refusal has another cause and is thrown: each restart costs money.
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
 * True if the page meets an entry at which an earlier pass through the list, or one of its pages, began. Known contacts
 * prove nothing: an imported one may follow us only since. Searches end by themselves.
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
 * Returns the entry at which a later pass through the list ends: a recipient of this page; for a search, the newest
 * post of the first page.
 */
function findNewest({ users, newest }: PageRead, { next }: Pass): string | undefined {
  if (newest === undefined) return users[0]?.id;
  return next === undefined ? newest : undefined;
}

/** Number of empty pages in a row after which the read of a list ends. X may filter a page after it has cut it. */
export const EMPTY_PAGES_MAX = 5;

/**
 * Creates a function from a page's entries and cursor to the next cursor, undefined at the end. Stops if the network
 * repeats a cursor, since each page costs money. `from`: the first cursor, undefined at the newest page.
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
