import { andThen, type Awaitable } from "../value-or-promise.ts";
import { InvalidAppend } from "../errors.ts";
import type { Limits } from "../limits.ts";
import { checkName } from "../check-name.ts";
import type { Codec, Encoded } from "../codec.ts";
import type { AppendOptions, Appended, ExpectedVersion, NewEvent } from "../event-store-interface.ts";
import type { SentAppend } from "./writer-messages.ts";

/**
 * Size in UTF-16 units of the piece of a large append that is sent while the rest is still encoded. The writer thread
 * takes longer to insert a piece than this thread to encode the next one.
 */
const PIECE_CHARS = 64 * 1024;

/** Sends one append to the writer thread in pieces. Nothing else may be sent before the last piece. */
export interface PieceSender {
  /** Sends the fields of events that were added since the last call. */
  send(): void;
  /** Sends the last piece, and resolves with the result of the whole append. */
  end(append: PreparedAppend): Promise<Appended>;
  /**
   * Ends an append that failed while it was prepared; call it instead of `end`. None of the append's events is stored.
   */
  abandon(): void;
}

/** An append that was checked, and whose events were turned into text. */
export interface PreparedAppend extends SentAppend {
  /** The events as the caller gave them. */
  readonly events: readonly NewEvent[];
  /** UTF-16 units of the events' text. */
  readonly chars: number;
  /** Sender of the pieces that are not sent yet; undefined unless the append is already being sent in pieces. */
  readonly pieces: PieceSender | undefined;
  readonly givesUpInDoubt: boolean;
}

/**
 * Checks and encodes an append; returns a promise only if the codec does. Throws {@link InvalidAppend}, or what
 * `codec.encode` throws.
 */
export function prepareAppend<E extends NewEvent>(
  stream: string,
  events: readonly E[],
  options: AppendOptions,
  codec: Codec<E>,
  limits: Limits,
  /**
   * Begins to send a large append while the rest of it is prepared. Returns undefined if the writer thread is busy or
   * takes no appends in pieces.
   */
  startPieces: (append: SentAppend) => PieceSender | undefined,
): Awaitable<PreparedAppend> {
  checkName("the stream's name", stream);
  if (events.length === 0) throw new InvalidAppend("an append holds at least one event");
  if (events.length > limits.appendEvents) {
    throw new InvalidAppend(`an append holds at most ${limits.appendEvents} events, this one ${events.length}`);
  }
  const { expected = "any", key = "", digest = "", fence, isChecked = false, givesUpInDoubt = false } = options;
  checkExpected(expected);
  if (options.key !== undefined) checkName("the idempotency key", key);
  if (options.digest !== undefined) checkName("the digest of what was asked", digest);
  if (fence !== undefined) checkName("the fence's lease", fence.lease);

  const fields: string[] = [];
  const lease = fence?.lease ?? "";
  const count = events.length;
  const token = fence?.token ?? 0;
  return andThen(codec.encode(events, isChecked), (encoded) => {
    const append = { stream, expected, key, digest, comparedSegments: 0, lease, token, fields, count };
    let pieces: PieceSender | undefined;
    let [chars, charsSent] = [0, 0];
    try {
      for (const event of encoded) {
        if (chars - charsSent >= PIECE_CHARS && (pieces ??= startPieces(append)) !== undefined) {
          pieces.send();
          charsSent = chars;
        }
        chars += prepareEvent(event, limits.eventBytes, fields);
      }
    } catch (error) {
      pieces?.abandon();
      throw error;
    }
    return { ...append, events, chars, pieces, givesUpInDoubt };
  });
}

function checkExpected(expected: ExpectedVersion): void {
  if (expected === "any" || expected === "none" || expected === "exists") return;
  if (!Number.isSafeInteger(expected) || expected < 0) throw new InvalidAppend(`no such expected version: ${expected}`);
}

/**
 * Checks an event, and adds its id, type, data, metadata and `transformInput` (work that the codec leaves to the writer
 * thread) to the texts in `fields`. Returns the added length in UTF-16 units. Throws {@link InvalidAppend}.
 */
function prepareEvent(
  { id, type, data, meta, transformInput = "" }: Encoded,
  bytesMax: number,
  fields: string[],
): number {
  checkName("the event's id", id);
  checkName("the event's type", type);
  if (transformInput.includes("\n")) throw new InvalidAppend("what an event leaves unfinished has no line breaks");
  const dataText = toJson("data", data);
  const metaText = toJson("meta", meta);
  const refusal = tooLarge(id, dataText, metaText, bytesMax);
  if (refusal !== undefined) throw new InvalidAppend(refusal);
  fields.push(id, type, dataText, metaText, transformInput);
  return id.length + type.length + dataText.length + metaText.length + transformInput.length;
}

function toJson(what: string, value: unknown): string {
  const text = stringify(what, value);
  if (text === undefined) throw new InvalidAppend(`the event's ${what} is not a JSON value`);
  return text;
}

// JSON.stringify escapes line breaks, NUL and lone surrogates, so that its text survives UTF-8, SQLite and the
// separators used here unchanged.
function stringify(what: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new InvalidAppend(`the event's ${what} cannot be written as JSON`, { cause });
  }
}

/**
 * Maximum number of UTF-8 bytes that one UTF-16 unit becomes. With this bound, most events are known to be small
 * enough, and their bytes need not be counted.
 */
const UTF8_BYTES_PER_CHAR_MAX = 3;

/** Returns the reason why an event with this JSON is too large; undefined if it is not. */
export function tooLarge(id: string, data: string, meta: string, bytesMax: number): string | undefined {
  if ((data.length + meta.length) * UTF8_BYTES_PER_CHAR_MAX <= bytesMax) return undefined;
  const bytes = Buffer.byteLength(data) + Buffer.byteLength(meta);
  return bytes > bytesMax ? `an event has at most ${bytesMax} bytes, ${id} has ${bytes}` : undefined;
}
