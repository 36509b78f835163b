import { CursorRefused } from "../errors.ts";
import type { DatabaseReader } from "../read/database-reader.ts";
import { lastPosition } from "../read/bounds.ts";
import type { BegunAs, Cursor } from "../store.ts";

interface Epoch {
  readonly id: string;
  /** The last position of the epoch before. */
  readonly after: number;
  readonly begunAs: BegunAs;
}

/** The lives of an open log. Only the opening of a copy adds one, so that the list is read once. */
export interface Epochs {
  readonly current: string;
  /** How the current one began. */
  readonly begunAs: BegunAs;
  cursor(position: number): Cursor;
  /** The first position that a consumer with this cursor has not seen. Throws {@link CursorRefused}. */
  after(cursor: Cursor): number;
}

export function readEpochs(reader: DatabaseReader, store: string): Epochs {
  const rows = reader.all("SELECT id, after, begun_as FROM epochs ORDER BY number");
  const epochs = rows.map((row): Epoch => {
    return { id: String(row["id"]), after: Number(row["after"]), begunAs: String(row["begun_as"]) as BegunAs };
  });
  const current = epochs.at(-1)!;

  return {
    current: current.id,
    begunAs: current.begunAs,
    // The epoch in which the event was appended: the log that a copy was taken of knows the shared ones too.
    cursor: (position) => ({
      store,
      epoch: (epochs.findLast(({ after }) => after < position) ?? epochs[0]!).id,
      position,
    }),
    after(cursor) {
      if (cursor.store !== store) throw refusal("other-store", `the log is ${store}, the cursor of ${cursor.store}`);
      const index = epochs.findIndex(({ id }) => id === cursor.epoch);
      if (index === -1) throw refusal("unknown-epoch", `the log never had the cursor's epoch ${cursor.epoch}`);
      const { position } = cursor;
      const end = epochs[index + 1]?.after ?? Infinity;
      if (position > end) throw refusal("epoch-ended", `the cursor is at ${position}, its epoch ended at ${end}`);
      const head = lastPosition(reader);
      if (position > head) throw refusal("beyond-head", `the cursor is at ${position}, the log ends at ${head}`);
      return position + 1;
    },
  };
}

function refusal(reason: CursorRefused["reason"], what: string): CursorRefused {
  return new CursorRefused(reason, `${what}: what the consumer has seen is not what this log holds`);
}
