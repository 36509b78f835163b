import type { IncomingMessage, ServerResponse } from "node:http";

/** More than any of the networks takes for what is sent here; a thousand events of Meta's are under 1 MiB. */
const REQUEST_BYTES_MAX = 8 * 1024 * 1024;

/** A request of node:http as the handlers want it, as if it had been sent to `url`. Undefined: it is too large. */
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

/** Writes the answer's head, dated by the sandbox's clock: clients learn from `Date` how their own clock is off. */
export function writeHead(response: ServerResponse, { status, headers }: Response, now: number): void {
  const all: Record<string, string | string[]> = Object.fromEntries(headers);
  delete all["content-length"];
  response.writeHead(status, { ...all, date: new Date(now).toUTCString() });
}

export async function writeAnswer(response: ServerResponse, answer: Response, now: number): Promise<void> {
  writeHead(response, answer, now);
  response.end(Buffer.from(await answer.arrayBuffer()));
}
