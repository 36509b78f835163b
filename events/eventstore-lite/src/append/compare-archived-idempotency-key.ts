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
 * Returns a function that searches the archived segments for the append's idempotency key. If no segment has the key,
 * the function appends with `again`. It throws {@link StoreUnavailable} if a segment is unreadable.
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
