import { KeyReused, StoreUnavailable } from "../errors.ts";
import type { FindArchivedKey } from "../archive/keys.ts";
import type { Appended } from "../store.ts";
import type { PreparedAppend } from "./prepare.ts";

/** Answers an append whose key may be archived. */
export type CompareKey = (append: PreparedAppend) => Promise<Appended>;

/**
 * Looks for the whole key in the segments, because the database holds only a short hash of it. If it is another key,
 * `again` repeats the append. Throws {@link StoreUnavailable} if a segment cannot be read: neither answer is safe then.
 */
export function createCompareKey(find: FindArchivedKey, again: CompareKey): CompareKey {
  return async (append) => {
    const { kept, compared } = await find(append.key).catch((cause: unknown) => {
      throw new StoreUnavailable(cause);
    });
    if (kept === undefined) return again({ ...append, pieces: undefined, comparedSegments: compared });
    const { first, last, version, digest } = kept;
    if (asksElse(digest, append.digest)) throw new KeyReused();
    return { first, last, version, repeated: true };
  };
}

/** True if the key was used for another request. An empty digest fits every request. */
export function asksElse(first: string, now: string): boolean {
  return first !== "" && now !== "" && first !== now;
}
