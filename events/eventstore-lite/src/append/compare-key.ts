import { KeyReused, StoreUnavailable } from "../errors.ts";
import type { FindArchivedKey } from "../archive/keys.ts";
import type { Appended } from "../store.ts";
import type { PreparedAppend } from "./prepare.ts";

/** Answers an append whose key may be archived. */
export type CompareKey = (append: PreparedAppend) => Promise<Appended>;

/**
 * The database has but a short hash of an archived key: the whole key decides, which a segment holds. Of another key the
 * append is sent again, by `again`. Throws {@link StoreUnavailable} while the segment cannot be read: neither answer is safe.
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

/** True if a key stands for something else. Who does not say what is asked takes whatever was. */
export function asksElse(first: string, now: string): boolean {
  return first !== "" && now !== "" && first !== now;
}
