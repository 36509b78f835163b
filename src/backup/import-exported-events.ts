// Imports a JSON Lines file of `reachlog audit export` as a new log. It restores no backup.
import { createReadStream, statSync } from "node:fs";
import { isStoreError, type Head } from "eventstore-lite";
import type { Config } from "../config/config.ts";
import { toStored, type ShownEvent, type StoredEvent } from "../log/export-formats/write-export-text.ts";
import type { StorePlace } from "../log/store-backends.ts";
import { countLinesBeforeFault } from "../platform/decode-utf8.ts";
import { ServiceError } from "../platform/service-error.ts";
import { addPath, withPath } from "../platform/describe-system-errors.ts";
import type { WorkMonitor } from "../log/progress-and-cancellation.ts";
import { locateLog } from "../privacy/locate-log.ts";
import { refuseForeignSecrets } from "../privacy/bind-secrets-to-log.ts";
import { bindNext } from "./put-backup-in-place.ts";

const STDIN = "-";
const KIB = 1024;

const CHUNK_BYTES = 256 * KIB;

/** File that `reachlog audit export` wrote as JSON Lines, and how to import it. */
interface ExportedFile {
  /** Path of the exported file; `-` reads stdin. */
  readonly path: string;
  /** True to use the existing vault and keys although they belong to another log. */
  readonly takeOverKeys: boolean;
}

/**
 * Creates the configured log from an exported file, and binds vault and keys to it. If one event does not fit, nothing
 * is imported. Throws a ServiceError, or the system's error of the file.
 */
export async function importEvents(config: Config, file: ExportedFile, monitor: WorkMonitor): Promise<Head> {
  const place = locateLog(config);
  if (!file.takeOverKeys) await refuseForeignSecrets(place, undefined);
  const head = await importFile(place.store, file, monitor);
  await bindNext(place);
  return head;
}

async function importFile(store: StorePlace, { path }: ExportedFile, monitor: WorkMonitor): Promise<Head> {
  const bytes = path === STDIN ? undefined : withPath(path, () => statSync(path).size);
  const read = async (onRead?: (kib: number) => void): Promise<Head> => {
    const place = { line: 1 };
    const chunks = readChunks(path, (done) => onRead?.(done / KIB));
    try {
      return await store.import(readEvents(chunks, place, monitor));
    } catch (fault) {
      throw isStoreError(fault, "import_refused") ? fileFault(place.line, fault.message) : fault;
    }
  };
  // The size of a pipe's content is unknown, so no progress can be shown.
  return bytes === undefined ? read() : monitor.showProgress("importing KiB", bytes / KIB, read);
}

async function* readChunks(path: string, onRead: (bytes: number) => void): AsyncGenerator<Uint8Array, void, void> {
  const stream = path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
  let read = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      read += chunk.length;
      onRead(read);
      yield chunk;
    }
  } catch (fault) {
    throw addPath(path, fault);
  }
}

async function* readEvents(
  chunks: AsyncIterable<Uint8Array>,
  place: { line: number },
  { isInterrupted }: WorkMonitor,
): AsyncGenerator<StoredEvent, void, void> {
  let isEmpty = true;
  for await (const { first, lines } of readLines(chunks)) {
    if (isInterrupted()) throw fileFault(first, "interrupted");
    for (const [index, line] of lines.entries()) {
      if (line === "") continue;
      isEmpty = false;
      place.line = first + index;
      yield parseEvent(line, place.line);
    }
  }
  if (isEmpty) throw fileFault(1, "the file holds no events");
}

/**
 * Parses one line of an exported log as an event. Checks only its form; the log checks that each event follows the one
 * before. An error does not repeat the line, which holds personal data.
 */
function parseEvent(text: string, line: number): StoredEvent {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw fileFault(line, "not JSON: it is damaged, cut off here, or exported in another format");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw fileFault(line, "not a JSON object");
  return toStored(value as ShownEvent);
}

/** Creates the error for an exported file in which this line cannot be read. Nothing was imported. */
function fileFault(line: number, reason: string): ServiceError {
  return new ServiceError("invalid", `line ${line}: ${reason}; nothing was imported`);
}

/**
 * Maximum length of a line of an exported log, in bytes: an event has at most 256 KiB, and the line holds its data
 * twice, decrypted and as stored. A file without line breaks must not fill the memory.
 */
const LINE_BYTES_MAX = KIB * KIB;

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = "\ufeff";

/**
 * Yields the lines of a UTF-8 text, without line breaks (LF or CRLF), in arrays: each has the lines that end in one
 * chunk of bytes. `first`: number of its first line, from 1. Throws a ServiceError (invalid).
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
  // The last line may end without a line break.
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
