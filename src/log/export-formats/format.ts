import type { NewEvent, Recorded, Awaitable } from "eventstore-lite";

/** An event as the log holds it, neither upcast nor checked. */
export type StoredEvent = Recorded<NewEvent>;

/** An event with its personal data decrypted. `stored`: its data as the log holds it, if some of it is encrypted. */
export type ShownEvent = StoredEvent & { readonly stored?: unknown };

/** Returns the stored form of an event that a line shows decrypted; the hashes cover only that form. */
export function toStored({ stored, ...event }: ShownEvent): StoredEvent {
  return stored === undefined ? event : { ...event, data: stored };
}

/** Writes a log to a file: one event a line, and no field of an event is lost or changed. */
export interface ExportFormat {
  /** The text before the first event. */
  readonly head: string;
  /** One event, including its line break. */
  line(event: ShownEvent): string;
}

/** Characters of one chunk: larger ones are not faster, and a slow reader holds back the next read. */
const CHUNK_CHARS = 64 * 1024;

export interface ExportChunk {
  readonly text: string;
  /** Position of the last event in it; 0 if there is none. */
  readonly position: number;
  readonly events: number;
}

/** Yields events as the text of a file, in chunks. The next events are read once the previous chunk was taken. */
export async function* exportText(
  shown: AsyncIterable<ShownEvent>,
  { head, line }: Pick<ExportFormat, "head" | "line">,
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

/** Converts stored events to shown ones, in the same order. */
export type Show = (events: readonly StoredEvent[]) => Awaitable<readonly ShownEvent[]>;

/** Shows events as they were written, together with the stored data if some of it is encrypted. */
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
