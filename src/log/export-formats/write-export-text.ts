import type { NewEvent, Recorded, Awaitable } from "eventstore-lite";

/** An event as the log holds it, neither upcast nor checked. */
export type StoredEvent = Recorded<NewEvent>;

/**
 * An event with its personal data decrypted, for an export. `stored`: its data as the log holds it, if some of it is
 * encrypted.
 */
export type ShownEvent = StoredEvent & { readonly stored?: unknown };

/** Returns the stored form of an event that an export shows decrypted. The log's hashes cover only the stored form. */
export function toStored({ stored, ...event }: ShownEvent): StoredEvent {
  return stored === undefined ? event : { ...event, data: stored };
}

/** Format of an export file: one event a line, with every field of the event unchanged. */
export interface ExportFormat {
  /** Text of the file before the first event. */
  readonly head: string;
  /** Formats one event as a line, including its line break. */
  line(event: ShownEvent): string;
}

/**
 * Size, in characters, at which the collected text of an export is passed on as one chunk. Larger chunks would not make
 * an export faster.
 */
const CHUNK_CHARS = 64 * 1024;

export interface ExportChunk {
  readonly text: string;
  /** Position of the last event in the chunk; 0 if there is none. */
  readonly position: number;
  readonly events: number;
}

/** Yields events as the text of a file, in chunks. The next events are read once the previous chunk was taken. */
export async function* exportText(
  shown: AsyncIterable<ShownEvent>,
  { head, line }: ExportFormat,
): AsyncGenerator<ExportChunk, void, void> {
  let text = head;
  let events = 0;
  let position = 0;
  for await (const event of shown) {
    text += line(event);
    events++;
    ({ position } = event);
    if (text.length < CHUNK_CHARS) continue;
    yield { text, position, events };
    text = "";
    events = 0;
  }
  if (text.length > 0) yield { text, position, events };
}

/** Function that converts stored events to the form in which an export shows them, in the same order. */
export type Show = (events: readonly StoredEvent[]) => Awaitable<readonly ShownEvent[]>;

/** Creates the function that shows events decrypted, together with the stored data if some of it is encrypted. */
export function shownBy(
  open: (events: readonly StoredEvent[]) => Awaitable<readonly { readonly data: unknown }[]>,
): Show {
  return async (events) => {
    const opened = await open(events);
    return events.map((event, at) => {
      const data = opened[at]?.data;
      return data === event.data ? event : { ...event, data, stored: event.data };
    });
  };
}
