import { CursorRefused } from "./errors.ts";
import type { Epoch, LogHistory } from "./event-store-interface.ts";

/**
 * Creates the functions that make and check consumers' cursors. `epochs`: all continuations of the log, oldest first,
 * at least one.
 */
export function createCursors(
  store: string,
  epochs: readonly Epoch[],
  lastPosition: () => number | Promise<number>,
): LogHistory {
  const current = epochs.at(-1)!;
  return {
    id: store,
    epoch: current.id,
    epochs: epochs.map(({ id }) => id),
    begunAs: current.begunAs,
    history: epochs,
    // The cursor names the epoch in which the event was appended. If this log is a copy, the original log therefore
    // accepts the cursor too.
    cursor: (position) => ({
      store,
      epoch: (epochs.findLast(({ after }) => after < position) ?? epochs[0]!).id,
      position,
    }),
    async after(cursor) {
      if (cursor.store !== store) throw refusal("other-store", `the log is ${store}, the cursor of ${cursor.store}`);
      const index = epochs.findIndex(({ id }) => id === cursor.epoch);
      if (index === -1) throw refusal("unknown-epoch", `the log never had the cursor's epoch ${cursor.epoch}`);
      const { position } = cursor;
      const end = epochs[index + 1]?.after ?? Infinity;
      if (position > end) throw refusal("epoch-ended", `the cursor is at ${position}, its epoch ended at ${end}`);
      const head = await lastPosition();
      if (position > head) throw refusal("beyond-head", `the cursor is at ${position}, the log ends at ${head}`);
      return position + 1;
    },
  };
}

function refusal(reason: CursorRefused["reason"], what: string): CursorRefused {
  return new CursorRefused(reason, `${what}: what the consumer has seen is not what this log holds`);
}
