import type { PagedSource } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";

/** Where a source is read on. */
export interface SourceCursor {
  /** The page to read next; null: from the top. */
  next: string | null;
  /** Newest entry of the pass under way. */
  newest: string | null;
  /** Newest entry of the last pass that came to its end: what is older was worked off. */
  since: string | null;
}

/** The paged sources, by {@link sourceKey}. */
export interface Sources {
  cursors: Map<string, SourceCursor>;
}

export const sources: Projection<Sources> = {
  name: "sources",
  version: 1,
  types: ["SourceRead"],
  initial: () => ({ cursors: new Map() }),
  evolve(state, event) {
    if (event.type !== "SourceRead") return state;
    const { source, scope, next, newest } = event.data;
    const cursor = cursorOf(state, source, scope);
    // Told of the first page of a pass.
    if (newest !== undefined) cursor.newest = newest;
    cursor.next = next ?? null;
    if (next === undefined) {
      cursor.since = cursor.newest ?? cursor.since;
      cursor.newest = null;
    }
    state.cursors.set(sourceKey(source, scope), cursor);
    return state;
  },
};

/** What a source stands at, without changing anything. */
export function cursorOf(state: Sources, source: PagedSource, scope: string): SourceCursor {
  const cursor = state.cursors.get(sourceKey(source, scope));
  return cursor === undefined ? { next: null, newest: null, since: null } : { ...cursor };
}

/** `scope` is the query, the list or the account that is read. */
export function sourceKey(source: PagedSource, scope: string): string {
  return `${source} ${scope}`;
}
