import { andThen, type Awaitable } from "../awaitable.ts";
import { InvalidAppend } from "../errors.ts";
import type { Limits } from "../limits.ts";
import { checkName } from "../names.ts";
import type { AppendOptions, Appended, Codec, Encoded, ExpectedVersion, NewEvent } from "../store.ts";
import type { SentAppend } from "./messages.ts";

/**
 * What is worth a message of its own while the rest of an append is still encoded: some hundred events of an ordinary
 * service, which take the writer thread longer than the next hundred take this one.
 */
const PIECE_CHARS = 64 * 1024;

/** Sends one append to the writer thread in pieces. Nothing else may be sent before its end. */
export interface PieceSender {
  /** Sends the fields that were added since it last did. */
  send(): void;
  /** Sends the last piece, and answers for the whole append. */
  end(append: PreparedAppend): Promise<Appended>;
  /** Instead of the end: nothing of it is appended. */
  abandon(): void;
}

/** An append that was checked, and whose events were turned into text. */
export interface PreparedAppend extends SentAppend {
  /** As the caller gave them. */
  readonly events: readonly NewEvent[];
  /** UTF-16 units of the events' text. */
  readonly chars: number;
  /** Where it began to be sent already, in pieces. */
  readonly pieces: PieceSender | undefined;
  readonly givesUpInDoubt: boolean;
}

/**
 * Throws {@link InvalidAppend}, or what `codec.encode` throws. A promise only where the codec answers one. `startPieces`
 * answers undefined unless a large append may be sent while it is prepared.
 */
export function prepareAppend<E extends NewEvent>(
  stream: string,
  events: readonly E[],
  options: AppendOptions,
  codec: Codec<E>,
  limits: Limits,
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

/** Adds the fields of an event, and answers how long they are. */
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

/** UTF-16 units become at most three UTF-8 bytes each, so that most events need no count of bytes. */
const UTF8_BYTES_PER_CHAR_MAX = 3;

/** Why an event with this JSON is too large; undefined: it is not. */
export function tooLarge(id: string, data: string, meta: string, bytesMax: number): string | undefined {
  if ((data.length + meta.length) * UTF8_BYTES_PER_CHAR_MAX <= bytesMax) return undefined;
  const bytes = Buffer.byteLength(data) + Buffer.byteLength(meta);
  return bytes > bytesMax ? `an event has at most ${bytesMax} bytes, ${id} has ${bytes}` : undefined;
}
