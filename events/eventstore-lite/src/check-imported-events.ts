import { canonicalHead, createLink, GENESIS_HASH } from "./event-hash-chain.ts";
import { ImportRefused, InvalidAppend } from "./errors.ts";
import { checkName } from "./check-name.ts";
import type { NewEvent, Recorded } from "./event-store-interface.ts";

/** Imported event that was checked and follows the event before it. */
export interface CheckedEvent extends CheckedFields {
  readonly hash: Uint8Array;
}

/**
 * Checks recorded events of any origin one after the other, from position 1 on. Throws {@link ImportRefused} unless the
 * event follows the one before it. `versionOf` returns a stream's version before the event.
 */
export type CheckImported = (event: Recorded<NewEvent>, versionOf: (stream: string) => number) => CheckedEvent;

export function createCheckImported(eventBytesMax: number): CheckImported {
  const link = createLink();
  const head = { position: 0, timeMs: 0, hash: GENESIS_HASH };

  return (event, versionOf) => {
    const position = head.position + 1;
    const refuse = (reason: string): never => {
      throw new ImportRefused(position, reason);
    };
    if (event.position !== position) refuse(misplaced(event.position, position));
    const { timeMs, data, meta } = checkFields(event, eventBytesMax, refuse);
    if (timeMs < head.timeMs) refuse("its time is before that of its predecessor");
    const { id, type, stream, version } = event;
    const wanted = versionOf(stream) + 1;
    if (version !== wanted) refuse(`its version is ${version}, the next one of its stream is ${wanted}`);
    const hash = link(head.hash, canonicalHead(position, stream, version, id, type, timeMs), data, meta);
    // The hash is checked last: it covers all fields, so it is also wrong after any other fault, and the earlier errors
    // say more. It is right only if data and meta are, byte by byte, the JSON text that was stored first.
    if (hash.toString("hex") !== event.hash) refuse("the hash does not follow from the event and its predecessor");
    Object.assign(head, { position, timeMs, hash });
    return { timeMs, data, meta, hash };
  };
}

function misplaced(found: unknown, wanted: number): string {
  if (typeof found !== "number" || !Number.isSafeInteger(found)) return "the event here has no position";
  if (found > wanted) return `it is missing: the event here is of position ${found}`;
  return `the event here is of position ${found}, which was before`;
}

interface CheckedFields {
  readonly timeMs: number;
  /** Data of the event as JSON text. */
  readonly data: string;
  /** Metadata of the event as JSON text. */
  readonly meta: string;
}

/**
 * Checks an imported event without regard to the events before it; calls `refuse` with the reason if it does not pass.
 */
function checkFields(event: Recorded<NewEvent>, bytesMax: number, refuse: (reason: string) => never): CheckedFields {
  try {
    checkName("the stream's name", event.stream);
    checkName("the event's id", event.id);
    checkName("the event's type", event.type);
  } catch (error) {
    if (error instanceof InvalidAppend) refuse(error.message);
    throw error;
  }
  const timeMs = Date.parse(event.time);
  // Each moment has only one accepted text, so that exporting the imported log returns the same bytes.
  if (Number.isNaN(timeMs) || new Date(timeMs).toISOString() !== event.time) {
    refuse("its time is not one of UTC with milliseconds, such as 2026-01-02T03:04:05.678Z");
  }
  // JSON.stringify restores the stored text only if JSON.stringify had made it. Any other text, such as one with spaces
  // or with 1.0 instead of 1, changes, and then the event's hash does not fit.
  const data = JSON.stringify(event.data) as string | undefined;
  const meta = JSON.stringify(event.meta) as string | undefined;
  if (data === undefined || meta === undefined) return refuse("its data or meta is missing");
  const bytes = Buffer.byteLength(data) + Buffer.byteLength(meta);
  if (bytes > bytesMax) refuse(`an event has at most ${bytesMax} bytes, this one has ${bytes}`);
  return { timeMs, data, meta };
}
