/** Pages without an entry that are followed one after the other: X may filter a page after it has cut it. */
export const EMPTY_PAGES_MAX = 5;

/** Watches one read of a long list: a network may give the same cursors again and again, each page for money. */
export interface CursorGuard {
  /** The cursor to go on with behind a page; undefined: here the read ends. */
  following(page: { readonly entries: number; readonly next: string | undefined }): string | undefined;
  /** Whether it ended although entries were still coming, at a cursor that had led to some before. */
  isCycle(): boolean;
}

/** `from`: the cursor with which the read begins; undefined: at the top. */
export function guardCursors(from: string | undefined): CursorGuard {
  const seen = new Set([from]);
  let emptyInARow = 0;
  let isCycle = false;
  return {
    following({ entries, next }) {
      if (next === undefined) return undefined;
      emptyInARow = entries === 0 ? emptyInARow + 1 : 0;
      const isRepeated = seen.has(next);
      seen.add(next);
      isCycle = isRepeated && entries > 0;
      return isRepeated || emptyInARow >= EMPTY_PAGES_MAX ? undefined : next;
    },
    isCycle: () => isCycle,
  };
}
