import { ServiceError } from "../../platform/service-error.ts";
import { countLinesBeforeFault } from "../../platform/find-invalid-utf8.ts";

/** The file to be imported cannot be read as a log. Nothing was imported. */
export function fileFault(line: number, reason: string): ServiceError {
  return new ServiceError("invalid", `line ${line}: ${reason}; nothing was imported`);
}

/**
 * Longest line taken. An event has at most 256 KiB; quoted once more, as CloudEvents does with `meta`, each of its bytes
 * may take six. A file without line breaks must not fill the memory.
 */
const LINE_BYTES_MAX = 2 * 1024 * 1024;

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = "\ufeff";

/**
 * The lines of a UTF-8 text without their line breaks (LF or CRLF), as many at a time as a chunk holds; `first`: the number
 * of the first, counted from 1. Throws a ServiceError (invalid).
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>) {
  let rest: Uint8Array = new Uint8Array();
  let first = 1;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_FEED);
    if (end !== -1) {
      const lines = split(Buffer.concat([rest, chunk.subarray(0, end)]), first);
      yield { first, lines };
      first += lines.length;
      rest = new Uint8Array();
    }
    rest = Buffer.concat([rest, chunk.subarray(end + 1)]);
    if (rest.length > LINE_BYTES_MAX) throw fileFault(first, `it is longer than ${LINE_BYTES_MAX} bytes`);
  }
  // The last line break may be missing.
  if (rest.length > 0) yield { first, lines: split(rest, first) };
}

function split(bytes: Uint8Array, first: number): string[] {
  const text = decode(bytes, first);
  const unmarked = first === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
  return unmarked.split(/\r?\n/).map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

function decode(bytes: Uint8Array, first: number): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fileFault(first + countLinesBeforeFault(bytes), "it is not valid UTF-8");
  }
}
