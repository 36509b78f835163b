/** An answer as received over the wire. */
export interface WireAnswer {
  readonly status: number;
  /** Header names in lower case, each with all of its values. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
}

export interface AnswerReader {
  readonly answers: readonly WireAnswer[];
  /** Adds bytes that were received on the connection, and parses the answers that are now complete. */
  take(bytes: Uint8Array): void;
  /** Says that the next answer is to a HEAD request. It states a length, but has no body. */
  expectNoBody(): void;
}

/**
 * Reads consecutive answers in the forms that the service writes: with a length or in chunks. Skips interim answers
 * (1xx).
 */
export function createReader(): AnswerReader {
  const answers: WireAnswer[] = [];
  const bodiless = new Set<number>();
  let seen: Buffer = Buffer.alloc(0);
  let isStreaming = false;

  /** Removes and returns the first complete answer of the received bytes. */
  const next = (): WireAnswer | undefined => {
    const headEnds = seen.indexOf("\r\n\r\n");
    if (headEnds === -1) return undefined;
    const { status, headers } = headOf(seen.toString("latin1", 0, headEnds));
    const isBodiless = bodiless.has(answers.length) || status < 200 || status === 204 || status === 304;
    // The head of an event stream counts as its answer, because the stream never ends. No other answer follows on this
    // connection.
    isStreaming = headers.get("content-type")?.[0] === "text/event-stream";
    if (isStreaming) return { status, headers, body: "" };
    const isChunked = headers.get("transfer-encoding")?.[0] === "chunked" && !isBodiless;
    const read = isChunked
      ? unchunked(seen, headEnds + 4)
      : ofLength(seen, headEnds + 4, isBodiless ? 0 : Number(headers.get("content-length")?.[0] ?? 0));
    if (read === undefined) return undefined;
    seen = seen.subarray(read.end);
    return { status, headers, body: read.body };
  };

  return {
    answers,
    take(bytes) {
      if (isStreaming) return;
      seen = Buffer.concat([seen, bytes]);
      for (let answer = next(); answer !== undefined; answer = isStreaming ? undefined : next()) {
        if (answer.status >= 200) answers.push(answer);
      }
    },
    expectNoBody: () => void bodiless.add(answers.length),
  };
}

/**
 * A body, and the offset in the received bytes at which the next answer begins; undefined if the body is incomplete.
 */
type Read = { readonly body: string; readonly end: number } | undefined;

function ofLength(bytes: Buffer, start: number, length: number): Read {
  const end = start + length;
  return bytes.length < end ? undefined : { body: bytes.toString("utf8", start, end), end };
}

/** Decodes a chunked body (RFC 9112, section 7.1). The service sends no trailers. */
function unchunked(bytes: Buffer, start: number): Read {
  const chunks: Buffer[] = [];
  for (let at = start; ;) {
    const lineEnds = bytes.indexOf("\r\n", at);
    if (lineEnds === -1) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnds), 16);
    const end = lineEnds + 2 + size + 2;
    if (bytes.length < end) return undefined;
    if (size === 0) return { body: Buffer.concat(chunks).toString("utf8"), end };
    chunks.push(bytes.subarray(lineEnds + 2, end - 2));
    at = end;
  }
}

function headOf(head: string): Pick<WireAnswer, "status" | "headers"> {
  const [first = "", ...lines] = head.split("\r\n");
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1];
  if (status === undefined) throw new Error(`no status line: ${first}`);
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return { status: Number(status), headers };
}
