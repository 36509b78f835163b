import type { EventStore, LogReading, StoredKey } from "../event-store-interface.ts";
import type { ArchiveTable, Catalogue, KeyRange } from "./catalogue.ts";
import type { OpenSegments } from "./segment-cache.ts";

/**
 * Number of positions whose idempotency keys are read in one pass; also the maximum number of keys in memory, about 60
 * MB. Each pass scans all keys, because no index leads from a position to its keys.
 */
const WINDOW_POSITIONS = 131_072;

/**
 * Maximum number of idempotency keys in a segment. A segment holds at most some 7,000 events, so it gets more keys only
 * if the database still holds keys of earlier segments' appends that were not archived yet.
 */
const SEGMENT_KEYS_MAX = 32_768;

/**
 * Creates the function that reads the idempotency keys to store in a segment: those of the segment's own appends, and
 * those of earlier appends for which the database still holds the key itself instead of only its hash.
 */
export function createKeyReader(store: LogReading, table: ArchiveTable): EventStore["readKeys"] {
  let [keys, end]: [StoredKey[], number] = [[], 0];

  async function readWindow(to: number): Promise<void> {
    const { position } = await store.head();
    [keys, end] = [[], Math.min(to + WINDOW_POSITIONS, position)];
    for await (const chunk of table.wholeKeys({ from: 1, to: end })) {
      keys.push(...chunk);
      if (keys.length >= WINDOW_POSITIONS) break;
    }
    keys.sort((one, other) => one.last - other.last);
  }

  return async function* ({ to }) {
    if (to > end) await readWindow(to);
    const after = keys.findIndex(({ last }) => last > to);
    yield keys.splice(0, Math.min(after === -1 ? keys.length : after, SEGMENT_KEYS_MAX));
  };
}

/** Result of looking for an idempotency key in the segments. */
export interface ArchivedKey {
  /**
   * The key, and the append that first used it. Undefined if no segment holds the key; then only its hash equals that
   * of another key.
   */
  readonly kept: StoredKey | undefined;
  /** Number of segments that were searched: all that may hold the key. */
  readonly compared: number;
}

export type FindArchivedKey = (key: string) => Promise<ArchivedKey>;

/** Looks for an idempotency key in the segments that may hold it. Throws if a segment cannot be read. */
export async function findArchivedKey(
  table: ArchiveTable,
  catalogue: Catalogue,
  open: OpenSegments,
  key: string,
): Promise<ArchivedKey> {
  const [numbers = []] = await table.keySegments([key]);
  await catalogue.refresh();
  for (const number of numbers) {
    const { keys } = await open(catalogue.entries()[number - 1]!);
    const kept = keys.find((one) => one.key === key);
    if (kept !== undefined) return { kept, compared: numbers.length };
  }
  return { kept: undefined, compared: numbers.length };
}

/** Yields the archived idempotency keys of appends that ended within [from, to]. */
export async function* readArchivedKeys(
  table: ArchiveTable,
  catalogue: Catalogue,
  open: OpenSegments,
  { from, to }: KeyRange,
): AsyncGenerator<readonly StoredKey[], void, void> {
  await catalogue.refresh();
  for (const [index, entry] of catalogue.entries().entries()) {
    if (entry.keysFrom === 0 || entry.keysFrom > to || entry.last < from) continue;
    const keys = (await open(entry)).keys.filter(({ last }) => last >= from && last <= to);
    const segments = await table.keySegments(keys.map(({ key }) => key));
    // Skips keys that are still whole in the database, and keys that the database assigns to another segment.
    const found = keys.filter((_, at) => segments[at]!.includes(index + 1));
    if (found.length > 0) yield found;
  }
}
