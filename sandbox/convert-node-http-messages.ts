import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Maximum size of a request: larger than any request that a network accepts here. A thousand events for Meta are under
 * 1 MiB.
 */
const REQUEST_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Converts a request of node:http to one for the handlers, as if it was sent to `url`. Undefined if its body is too
 * large.
 */
export async function toRequest(incoming: IncomingMessage, url: string): Promise<Request | undefined> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const method = incoming.method ?? "GET";
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers });
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    size += (chunk as Buffer).length;
    if (size > REQUEST_BYTES_MAX) return undefined;
    chunks.push(chunk as Buffer);
  }
  return new Request(url, { method, headers, body: Buffer.concat(chunks) });
}

export function tooLarge(): Response {
  return new Response("Payload Too Large", { status: 413 });
}

/**
 * Writes an answer's head with a `Date` by the sandbox's clock. Clients learn from it how far their own clock is off.
 */
export function writeHead(response: ServerResponse, { status, headers }: Response, now: number): void {
  const all: Record<string, string | string[]> = Object.fromEntries(headers);
  delete all["content-length"];
  response.writeHead(status, { ...all, date: new Date(now).toUTCString() });
}

export async function writeAnswer(response: ServerResponse, answer: Response, now: number): Promise<void> {
  writeHead(response, answer, now);
  response.end(Buffer.from(await answer.arrayBuffer()));
}

/** Time that a slow answer takes: longer than any sensible deadline of a client. */
const SLOW_BODY_MS = 60_000;
const SLOW_CHUNKS = 60;

const HUGE_CHUNK = Buffer.alloc(64 * 1024, "x");

/** Number of chunks in a huge answer of 256 MiB. The answer ends even if a client reads without limit. */
const HUGE_CHUNKS = 4_096;

/** Kind of fault -> writes an answer's body with this fault. The head is already written. */
export const SPOILED = {
  /** Sends the body a few bytes at a time. If the fault is switched off, sends all remaining bytes at once. */
  slow_body(response: ServerResponse, body: Buffer, hold: (end: () => void) => void): void {
    const size = Math.max(1, Math.ceil(body.length / SLOW_CHUNKS));
    let sent = 0;
    const drip = (): void => {
      response.write(body.subarray(sent, sent + size));
      sent += size;
      if (sent >= body.length) response.end();
    };
    const timer = setInterval(drip, SLOW_BODY_MS / SLOW_CHUNKS);
    response.once("close", () => clearInterval(timer)).once("finish", () => clearInterval(timer));
    hold(() => void response.end(body.subarray(sent)));
    drip();
  },

  /** Sends a body larger than a client should hold in memory. */
  huge_body(response: ServerResponse): void {
    let chunks = 0;
    const pour = (): void => {
      while (chunks++ < HUGE_CHUNKS) if (!response.write(HUGE_CHUNK)) return;
      response.end();
    };
    response.on("drain", pour);
    pour();
  },

  /** Sends a body that ends within a JSON value, although it is complete for HTTP. */
  invalid_json(response: ServerResponse, body: Buffer): void {
    response.end(`${half(body).toString()}{`);
  },

  /** Closes the connection in the middle of the body. */
  cut_body(response: ServerResponse, body: Buffer): void {
    response.write(half(body), () => response.socket?.destroy());
  },
} as const;

export type Spoiled = keyof typeof SPOILED;

export function isSpoiled(kind: string): kind is Spoiled {
  return Object.hasOwn(SPOILED, kind);
}

function half(body: Buffer): Buffer {
  return body.subarray(0, Math.ceil(body.length / 2));
}

/** Closes a request's connection without an answer. The client sees ECONNRESET. */
export function cutOff(incoming: IncomingMessage): void {
  incoming.socket.destroy();
}
