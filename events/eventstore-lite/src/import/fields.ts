import { InvalidAppend } from "../errors.ts";
import { checkName } from "../names.ts";
import type { NewEvent, Recorded } from "../store.ts";

export interface CheckedFields {
  readonly timeMs: number;
  /** JSON, as `meta`. */
  readonly data: string;
  readonly meta: string;
}

/** Checks what can be seen from the event alone; calls `refuse` with what is wrong. */
export function checkFields(
  event: Recorded<NewEvent>,
  bytesMax: number,
  refuse: (reason: string) => never,
): CheckedFields {
  try {
    checkName("the stream's name", event.stream);
    checkName("the event's id", event.id);
    checkName("the event's type", event.type);
  } catch (error) {
    if (error instanceof InvalidAppend) refuse(error.message);
    throw error;
  }
  const timeMs = Date.parse(event.time);
  // Only one text stands for a moment, so that an export of the import is the same, byte by byte.
  if (Number.isNaN(timeMs) || new Date(timeMs).toISOString() !== event.time) {
    refuse("its time is not one of UTC with milliseconds, such as 2026-01-02T03:04:05.678Z");
  }
  // JSON.stringify gives a text that it made itself back unchanged. Of a text made by others (with spaces, with 1.0 for
  // 1) the bytes are not known any more, and the hash will show it.
  const data = JSON.stringify(event.data) as string | undefined;
  const meta = JSON.stringify(event.meta) as string | undefined;
  if (data === undefined || meta === undefined) return refuse("its data or meta is missing");
  const bytes = Buffer.byteLength(data) + Buffer.byteLength(meta);
  if (bytes > bytesMax) refuse(`an event has at most ${bytesMax} bytes, this one has ${bytes}`);
  return { timeMs, data, meta };
}
