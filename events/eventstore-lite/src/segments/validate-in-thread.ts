import { SegmentDamaged } from "../errors.ts";
import type { ChainPoint } from "../event-store-interface.ts";
import { runTask } from "../thread-task.ts";
import type { RecordedFile } from "./catalogue.ts";
import { readFile } from "./segment-cache.ts";
import { type ProvedSegment, proveSegment } from "./validate-segment.ts";
import type { SegmentReader } from "./segment-storage.ts";

/** Maximum size of segments that are proved in this thread, which takes less time than starting another thread. */
const BYTES_HERE_MAX = 256 * 1024;

/**
 * A sealed segment that is to be verified: its file must be whole, and its events must follow directly after the event
 * `after`.
 */
export interface ProvableSegment {
  readonly name: string;
  /**
   * Size and hash of the segment's file, as the database's list of segments holds them; undefined for a file that is
   * not in the list yet.
   */
  readonly sealed?: RecordedFile | undefined;
  /** Size of a file that was just written and is not recorded yet, in bytes; undefined if it is unknown. */
  readonly writtenBytes?: number | undefined;
  /**
   * Number of the segment's events that are in the verified range of positions. `onProved` gets this number as progress
   * once the segment is found whole.
   */
  readonly events: number;
  readonly after: ChainPoint;
}

export interface ProveOrder {
  /** Id of the log whose segments are proved. */
  readonly log: string;
  readonly segments: readonly ProvableSegment[];
}

export type Proof = ProvedSegment | { readonly damage: string };

export interface ProveOptions {
  /** The thread that proves segments calls this with the number of events of each segment that it has found whole. */
  readonly onProved?: ((events: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Proves segments in order, up to the first damaged one. Larger ones are proved in a separate thread, so that other
 * work continues.
 */
export async function proveApart(
  storage: SegmentReader,
  order: ProveOrder,
  options: ProveOptions = {},
): Promise<readonly Proof[]> {
  const bytes = order.segments.reduce(
    (sum, { sealed, writtenBytes }) => sum + (sealed?.bytes ?? writtenBytes ?? Infinity),
    0,
  );
  if (bytes <= BYTES_HERE_MAX) return proveAll(storage, order, options);
  const { onProved: onProgress, signal } = options;
  const module = new URL("./validate-thread.ts", import.meta.url);
  return runTask(module, order, { onProgress, fetchFile: storage.read, signal });
}

/** Proves the segments in this thread. */
export async function proveAll(
  storage: SegmentReader,
  { log, segments }: ProveOrder,
  { onProved, signal }: ProveOptions,
): Promise<readonly Proof[]> {
  const proofs: Proof[] = [];
  for (const { name, sealed, events, after } of segments) {
    signal?.throwIfAborted();
    try {
      proofs.push(proveSegment(await readFile(storage, name, sealed), log, after));
    } catch (error) {
      if (!(error instanceof SegmentDamaged)) throw error;
      return [...proofs, { damage: error.message }];
    }
    onProved?.(events);
  }
  return proofs;
}
