import { hash } from "node:crypto";

export const HASH_BYTES = 32;

/** Takes the place of the previous hash in the hash of the first event. */
export const GENESIS_HASH: Uint8Array = new Uint8Array(HASH_BYTES);

/** Maximum number of UTF-8 bytes that one UTF-16 unit of a text becomes. */
const UTF8_BYTES_PER_CHAR_MAX = 3;
const SCRATCH_BYTES_START = 64 * 1024;

/**
 * The canonical text of an event, without its last two lines, data and meta: one field a line. No field can hold a line
 * break (names have no control characters, JSON escapes them), so two different events never have the same text.
 */
export function canonicalHead(
  position: number,
  stream: string,
  version: number,
  id: string,
  type: string,
  timeMs: number,
): string {
  return `${position}\n${stream}\n${version}\n${id}\n${type}\n${timeMs}`;
}

/** Space before an event's canonical bytes, into which {@link linkInPlace} writes the previous event's hash. */
const ROOM_FOR_HASH = " ".repeat(HASH_BYTES);

const CANONICAL_FIELDS = ["e.position", "s.name", "e.version", "e.id", "t.name", "e.time", "e.data", "e.meta"];

/**
 * The canonical bytes of an event, as SQL over events e, streams s and types t. Uses `concat`, because `concat_ws`
 * would leave out the line of a NULL.
 */
export const CANONICAL_SQL: string = `CAST(concat(${CANONICAL_FIELDS.join(", char(10), ")}) AS BLOB)`;

/**
 * Free space for a hash, followed by the canonical bytes of an event, as SQL over events e, streams s and types t. One
 * call of `concat` is faster than reading eight columns, or than many `||`.
 */
export const LINK_SQL: string = `CAST(concat('${ROOM_FOR_HASH}', ${CANONICAL_FIELDS.join(", char(10), ")}) AS BLOB)`;

/**
 * Returns the hash of an event, like {@link createLink}. `bytes` come from {@link LINK_SQL} and begin with free space,
 * into which the previous hash is written.
 */
export function linkInPlace(previous: Uint8Array, bytes: Uint8Array): Buffer {
  bytes.set(previous, 0);
  return hash("sha256", bytes, "buffer");
}

const LINE_FEED = 10;

/**
 * Computes the hash of an event: SHA-256(previous hash ‖ UTF-8 of the event's canonical text). `lines` are the text's
 * lines.
 */
export type Link = (previous: Uint8Array, ...lines: readonly string[]) => Buffer;

/**
 * Creates the function that links one event to the chain. Its links reuse one buffer (measured: 1.25 M/s, against 0.95
 * M/s with a hash object). They write the lines one by one: joining long lines first would double the time.
 */
export function createLink(): Link {
  let scratch = Buffer.alloc(SCRATCH_BYTES_START);
  return (previous, ...lines) => {
    let bytesMax = HASH_BYTES;
    for (const line of lines) bytesMax += 1 + line.length * UTF8_BYTES_PER_CHAR_MAX;
    if (bytesMax > scratch.length) scratch = Buffer.alloc(2 * bytesMax);
    scratch.set(previous, 0);
    let end = HASH_BYTES;
    for (const line of lines) {
      if (end > HASH_BYTES) scratch[end++] = LINE_FEED;
      end += scratch.write(line, end, "utf8");
    }
    return hash("sha256", scratch.subarray(0, end), "buffer");
  };
}
