import type { PagedSource } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";

/** Place in a source of recipients where the next reading continues. */
export interface SourceCursor {
  /** Cursor of the page to read next; null to start from the top. */
  next: string | null;
  /**
   * First user of each page that the current pass has read, at most {@link LANDMARKS_MAX}; in a search, only the newest
   * post of the first page. The next pass ends where it finds one of them.
   */
  newest: string[];
  /**
   * Newest entries (users or posts) on the pages of completed passes, newest first. Everything below any of them in the
   * list was processed; several are kept, because entries may disappear.
   */
  since: string[];
}

/**
 * Maximum number of newest entries by which the next pass recognises where this one began. Several are kept, because a
 * user may leave the list; 20 users hardly ever leave together.
 */
const LANDMARKS_MAX = 20;

/** Cursors of the sources that are read page by page. */
export interface Sources {
  cursors: Map<string, SourceCursor>;
}

export const sources: Projection<Sources> = {
  name: "sources",
  version: 2,
  types: ["SourceRead"],
  initial: () => ({ cursors: new Map() }),
  evolve(state, event) {
    if (event.type !== "SourceRead") return state;
    const { source, scope, from, next, newest } = event.data;
    const cursor = cursorOf(state, source, scope);
    if (from === undefined) cursor.newest = [];
    if (newest !== undefined && cursor.newest.length < LANDMARKS_MAX) cursor.newest.push(newest);
    cursor.next = next ?? null;
    if (next === undefined) {
      cursor.since = [...new Set([...cursor.newest, ...cursor.since])].slice(0, LANDMARKS_MAX);
      cursor.newest = [];
    }
    state.cursors.set(sourceKey(source, scope), cursor);
    return state;
  },
};

/** Returns a copy of a source's cursor; the cursor of a new source if it was never read. */
export function cursorOf(state: Sources, source: PagedSource, scope: string): SourceCursor {
  const cursor = state.cursors.get(sourceKey(source, scope));
  if (cursor === undefined) return { next: null, newest: [], since: [] };
  return { next: cursor.next, newest: [...cursor.newest], since: [...cursor.since] };
}

/** Returns the name of a source's cursor. `scope` is the query, the list or the account that is read. */
function sourceKey(source: PagedSource, scope: string): string {
  return `${source} ${scope}`;
}
