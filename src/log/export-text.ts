import type { Awaitable } from "eventstore-lite";
import type { ExportFormat, ShownEvent, StoredEvent } from "./export-formats/format.ts";

/** Characters handed out at once: more are not faster, and a slow reader holds back the next read. */
const CHUNK_CHARS = 64 * 1024;

/** A part of an export. */
export interface ExportChunk {
  readonly text: string;
  /** Of the last event in it; 0: there is none. */
  readonly position: number;
  readonly events: number;
}

/** Events as the text of a file, chunk after chunk: the next are read when the one before was taken. */
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

/** Makes of stored events what is shown of them, each in its place. */
export type Show = (events: readonly StoredEvent[]) => Awaitable<readonly ShownEvent[]>;

/** Shows events as they were written, beside the data as it is stored where something of it is encrypted. */
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
