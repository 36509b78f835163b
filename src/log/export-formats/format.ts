import type { NewEvent, Recorded, Awaitable } from "eventstore-lite";
import { ServiceError } from "../../platform/service-error.ts";

/** An event as the log holds it, neither upcast nor checked. */
export type StoredEvent = Recorded<NewEvent>;

/** An event as it is shown: opened. `stored`: its data as the log holds it, where something of it is encrypted. */
export type ShownEvent = StoredEvent & { readonly stored?: unknown };

/** What was stored of a line that shows it opened: the hashes cover nothing else. */
export function toStored({ stored, ...event }: ShownEvent): StoredEvent {
  return stored === undefined ? event : { ...event, data: stored };
}

/**
 * How a log is written to a file and read again: one event a line, and no field of an event is lost or changed. What a
 * line holds beside them is left alone.
 */
export interface ExportFormat {
  /** What comes before the first event. */
  readonly head: string;
  /** One event, its line break included. */
  line(event: ShownEvent): string;
  /** Makes the function that reads the lines of one file, batch by batch. */
  createReader(): ReadLines;
}

/**
 * The event of each line; undefined for a line that has none. Throws {@link LineFault}. Nothing but the shape is looked
 * at: whether the events make a log, the log finds out.
 */
export type ReadLines = (lines: readonly string[]) => readonly (StoredEvent | undefined)[];

/** A line that holds no event of this format; `index` counts from the first line of the batch. */
export class LineFault extends ServiceError<"invalid"> {
  override readonly name = "LineFault";
  readonly index: number;
  constructor(index: number, message: string) {
    super("invalid", message);
    this.index = index;
  }
}

/** Reads formats of which each line is a JSON object. */
export function readJsonLines(toEvent: (line: Readonly<Record<string, unknown>>) => StoredEvent): ReadLines {
  const read = (line: string): StoredEvent | undefined => {
    if (line === "") return undefined;
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not a JSON object");
    return toEvent(value as Record<string, unknown>);
  };
  return (lines) => lines.map((line, index) => attempt(index, () => read(line)));
}

/** Names the line of what `read` throws. The line itself is not repeated: it is full of personal data. */
export function attempt<Result>(index: number, read: () => Result): Result {
  try {
    return read();
  } catch (fault) {
    if (fault instanceof SyntaxError)
      throw new LineFault(index, "not JSON: it is damaged, or the file was cut off here");
    throw new LineFault(index, (fault as Error).message);
  }
}

/** Characters handed out at once: more are not faster, and a slow reader holds back the next read. */
const CHUNK_CHARS = 64 * 1024;

export interface ExportChunk {
  readonly text: string;
  /** Of the last event in it; 0: there is none. */
  readonly position: number;
  readonly events: number;
}

/** Events as the text of a file, chunk after chunk: the next are read when the one before was taken. */
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
