import type { IncomingMessage, ServerResponse } from "node:http";

/** More than any of the networks accepts here; a thousand events for Meta are under 1 MiB. */
const REQUEST_BYTES_MAX = 8 * 1024 * 1024;

/** Converts a request of node:http for the handlers, as if sent to `url`. Undefined if it is too large. */
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
 * Writes the answer's head with a `Date` of the sandbox's clock, from which clients learn how far their own clock is
 * off.
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

/** Duration of a slow body: longer than any sensible deadline. */
const SLOW_BODY_MS = 60_000;
const SLOW_CHUNKS = 60;

const HUGE_CHUNK = Buffer.alloc(64 * 1024, "x");

/** 256 MiB in total, so that it ends even if a client reads without limit. */
const HUGE_CHUNKS = 4_096;

/** Writers of spoiled bodies; the head is already written. */
export const SPOILED = {
  /** Sends a few bytes at a time; sends the rest at once when the wait ends. */
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

  /** Sends more than a client should hold in memory. */
  huge_body(response: ServerResponse): void {
    let chunks = 0;
    const pour = (): void => {
      while (chunks++ < HUGE_CHUNKS) if (!response.write(HUGE_CHUNK)) return;
      response.end();
    };
    response.on("drain", pour);
    pour();
  },

  /** Ends within a JSON value, but correctly by HTTP. */
  invalid_json(response: ServerResponse, body: Buffer): void {
    response.end(`${half(body).toString()}{`);
  },

  /** Ends the connection in the middle of the body. */
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

/** Ends the connection without an answer; the client sees ECONNRESET. */
export function cutOff(incoming: IncomingMessage): void {
  incoming.socket.destroy();
}
