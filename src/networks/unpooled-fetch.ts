import { request as requestByHttp, type IncomingMessage } from "node:http";
import { request as requestByHttps } from "node:https";
import { pipeline, type Duplex } from "node:stream";
import { ReadableStream } from "node:stream/web";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { omitUndefined } from "../platform/omit-undefined.ts";

const UNPACKERS = new Map<string | undefined, () => Duplex>([
  ["gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", createZstdDecompress],
]);

/** Request headers that every runtime's own `fetch` sends as well. */
const HEADERS = { "accept-encoding": [...UNPACKERS.keys()].join(", ") };

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Statuses of answers for which a `Response` takes no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Sends a request like `fetch`, on a new connection and without redirects. Deno's own repeats a POST silently when a
 * kept connection dies, and its errors do not tell if anything was sent. `ca` replaces the trusted authorities (PEM).
 */
export async function unpooledFetch(url: string, { method, headers, body, signal }: RequestInit, ca?: string) {
  const send = url.startsWith("https:") ? requestByHttps : requestByHttp;
  const request = send(url, {
    agent: false,
    headers: { ...HEADERS, ...Object.fromEntries(new Headers(headers)) },
    ...omitUndefined({ method, signal: signal ?? undefined, ca }),
  });
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve);
    // Rejects an answer that upgrades the protocol, because none was requested.
    request.once("upgrade", (answer) => reject(answer.destroy(new Error("upgraded"))));
    request.on("error", (fault) => reject(signal?.aborted === true ? signal.reason : fault));
    request.end(body);
  });
  try {
    return toResponse(incoming);
  } catch (fault) {
    request.destroy();
    throw fault;
  }
}

function toResponse(incoming: IncomingMessage): Response {
  const { statusCode: status = 0, rawHeaders } = incoming;
  if (REDIRECTS.has(status)) throw Object.assign(new Error("redirected"), { code: "UnexpectedRedirect" });
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const unpacker = UNPACKERS.get(incoming.headers["content-encoding"]?.toLowerCase());
  // Pipes the answer through the decompressor, so that a fault of either stream reaches the reader.
  const bytes = unpacker === undefined ? incoming : pipeline(incoming, unpacker(), () => {});
  const body = BODILESS.has(status) ? null : (ReadableStream.from(bytes) as never);
  return new Response(body, { status, headers });
}
