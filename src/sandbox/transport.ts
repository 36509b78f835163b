import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** A request of node:http as the handlers want it, addressed to `url` (or below it, when that is an origin). */
export async function toRequest(incoming: IncomingMessage, url: string): Promise<Request> {
  const target = new URL(url);
  const full = target.pathname === "/" && target.search === "" ? new URL(incoming.url ?? "/", target) : target;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const method = incoming.method ?? "GET";
  if (method === "GET" || method === "HEAD") return new Request(full, { method, headers });
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return new Request(full, { method, headers, body: Buffer.concat(chunks) });
}

/** Seconds that a slow body takes for all of its bytes. */
const SLOW_BODY_MS = 60_000;
const SLOW_CHUNKS = 60;

const HUGE_BODY_CHUNK = Buffer.alloc(64 * 1024, "x");

/** Ends by itself, should a client read on and on. */
const HUGE_BODY_CHUNKS = 4_096;

/** Writes the answer, spoiled in the way the fault says. */
export async function writeAnswer(
  response: ServerResponse,
  answer: Response,
  spoil?: "slow_body" | "huge_body" | "invalid_json",
): Promise<void> {
  const headers = Object.fromEntries(answer.headers);
  delete headers["content-length"];
  const cookies = answer.headers.getSetCookie();
  response.writeHead(answer.status, cookies.length > 0 ? { ...headers, "set-cookie": cookies } : headers);
  const body = Buffer.from(await answer.arrayBuffer());
  if (spoil === "slow_body") return drip(response, body);
  if (spoil === "huge_body") return flood(response);
  response.end(spoil === "invalid_json" ? `${body.subarray(0, body.length / 2).toString()}{` : body);
}

async function drip(response: ServerResponse, body: Buffer): Promise<void> {
  const size = Math.max(1, Math.ceil(body.length / SLOW_CHUNKS));
  for (let at = 0; at < body.length && !response.destroyed; at += size) {
    response.write(body.subarray(at, at + size));
    await new Promise((resolve) => setTimeout(resolve, SLOW_BODY_MS / SLOW_CHUNKS));
  }
  response.end();
}

/** Ends early when the client hangs up. */
async function flood(response: ServerResponse): Promise<void> {
  const chunks = function* () {
    for (let chunk = 0; chunk < HUGE_BODY_CHUNKS; chunk++) yield HUGE_BODY_CHUNK;
  };
  await pipeline(Readable.from(chunks()), response).catch(() => undefined);
}

/** Never answers; ends when the client leaves. */
export function hang(incoming: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    if (incoming.socket.destroyed) resolve();
    else incoming.socket.once("close", () => resolve());
  });
}

/** Ends the connection without an answer. */
export function cutOff(incoming: IncomingMessage): void {
  incoming.socket.destroy();
}
