/** Pages without an entry that are followed one after the other: X may filter a page after it has cut it. */
export const EMPTY_PAGES_MAX = 5;

/** Watches one read of a long list: a network may give the same cursors again and again, each page for money. */
export interface CursorGuard {
  /** The cursor to go on with behind a page; undefined: here the read ends. */
  following(page: { readonly entries: number; readonly next: string | undefined }): string | undefined;
}

/** `from`: the cursor with which the read begins; undefined: at the top. */
export function guardCursors(from: string | undefined): CursorGuard {
  const seen = new Set([from]);
  let emptyInARow = 0;
  return {
    following({ entries, next }) {
      if (next === undefined) return undefined;
      emptyInARow = entries === 0 ? emptyInARow + 1 : 0;
      const isRepeated = seen.has(next);
      seen.add(next);
      return isRepeated || emptyInARow >= EMPTY_PAGES_MAX ? undefined : next;
    },
  };
}
