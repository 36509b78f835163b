import { KeyReused, StoreUnavailable } from "../errors.ts";
import type { FindArchivedKey } from "../segments/idempotency-keys.ts";
import type { Appended } from "../event-store-interface.ts";
import type { PreparedAppend } from "./prepare-append.ts";

/**
 * Settles an append whose idempotency key may have been used by an append that is archived now: returns the result of
 * that append, or appends.
 */
export type CompareKey = (append: PreparedAppend) => Promise<Appended>;

/**
 * Creates the comparison of an idempotency key with those in segments; the database holds only their short hashes. If
 * no segment holds the key, `again` repeats the append. Throws {@link StoreUnavailable} if a segment is unreadable.
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

/**
 * True if the digests show that an idempotency key was first used for another request. An empty digest fits every
 * request.
 */
export function asksElse(first: string, now: string): boolean {
  return first !== "" && now !== "" && first !== now;
}
