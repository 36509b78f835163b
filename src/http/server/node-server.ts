import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ReadableStream } from "node:stream/web";

/** Maximum time in ms until all headers of a request have arrived. */
const HEADERS_MS_MAX = 10_000;

/**
 * Maximum time in ms until a whole request has arrived. A caller that sends its body very slowly would otherwise keep a
 * connection for ever.
 */
const REQUEST_MS_MAX = 30_000;

/**
 * Maximum time in ms to read the rest of a body after the response was sent. If the caller were cut off at once, it
 * might not get the response.
 */
const REST_MS_MAX = 10_000;

/** Time in ms between two checks for clients that send too slowly. */
const LOOK_MS = 1_000;

/** Maximum size of all headers of a request together, in bytes. */
export const HEADER_BYTES_MAX = 16 * 1024;

/** Maximum number of headers of a request. Beyond its own limit, `node:http` would drop headers without an error. */
const HEADERS_MAX = 200;

type Fetch = (request: Request) => Response | Promise<Response>;

/**
 * Serves `fetch` by `node:http`, for runtimes other than Bun. `idleTimeout`: seconds without a byte after which a
 * connection is closed. Rejects with the system's error if the port is taken.
 */
export async function serveByNode(
  fetch: Fetch,
  { hostname, port, idleTimeout }: { readonly hostname: string; readonly port: number; readonly idleTimeout: number },
) {
  const incomingOf = new WeakMap<Request, IncomingMessage>();
  let pendingRequests = 0;
  let isStopping = false;
  const server = createServer(
    {
      headersTimeout: HEADERS_MS_MAX,
      requestTimeout: REQUEST_MS_MAX,
      connectionsCheckingInterval: LOOK_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      keepAliveTimeout: idleTimeout * 1000,
    },
    (incoming, outgoing) => {
      outgoing.once("close", () => discardRest(incoming));
      if (isStopping) outgoing.shouldKeepAlive = false;
      const request = toRequest(incoming);
      if (typeof request === "number") return void outgoing.writeHead(request, { connection: "close" }).end();
      incomingOf.set(request, incoming);
      pendingRequests += 1;
      void answer(fetch, request, outgoing).finally(() => (pendingRequests -= 1));
    },
  ).setTimeout(idleTimeout * 1000);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, hostname, resolve);
  });
  const stopped = Promise.withResolvers<void>();
  return {
    get pendingRequests() {
      return pendingRequests;
    },
    /** Returns the remote IP address of a request's connection; null once it is closed. */
    requestIP(request: Request): { readonly address: string } | null {
      const address = incomingOf.get(request)?.socket.remoteAddress;
      return address === undefined ? null : { address };
    },
    /** Sets how many seconds the connection may be idle until this request is answered; 0 for no limit. */
    timeout: (request: Request, seconds: number): void =>
      void incomingOf.get(request)?.socket.setTimeout(seconds * 1000),
    /**
     * Accepts no more connections. Resolves once all requests in flight are answered; with `true`, they are broken off
     * instead.
     */
    stop(breakOff = false): Promise<void> {
      if (!isStopping) server.close(() => stopped.resolve());
      isStopping = true;
      if (breakOff) server.closeAllConnections();
      return stopped.promise;
    },
  };
}

/** Converts a request of `node:http` to a `Request`, or returns the status that refuses an invalid one. */
function toRequest(incoming: IncomingMessage): Request | number {
  const { method = "", url = "", httpVersion, rawHeaders } = incoming;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return 505;
  if (rawHeaders.length > 2 * HEADERS_MAX) return 431;
  const coding = incoming.headers["transfer-encoding"] ?? "chunked";
  if (coding.toLowerCase() !== "chunked" || !url.startsWith("/")) return 400;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  // Reads the body as it arrives. If the reader stops early, the connection stays open for the response.
  const read = () => ReadableStream.from(incoming.iterator({ destroyOnReturn: false })) as never;
  const body = hasBody(method, headers) ? read() : null;
  // `Request` does not allow the method TRACE. No endpoint has TRACE or OPTIONS, so both get the same response.
  const init = { method: method === "TRACE" ? "OPTIONS" : method, headers, body, duplex: "half" };
  try {
    return new Request(`http://localhost${url}`, init);
  } catch {
    return 400;
  }
}

function hasBody(method: string, headers: Headers): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
}

/** Discards the rest of a request body, so that the connection can be used again. */
function discardRest(incoming: IncomingMessage): void {
  incoming.resume();
  if (incoming.complete || incoming.destroyed) return;
  const tooLate = setTimeout(() => incoming.socket.destroy(), REST_MS_MAX);
  incoming.once("close", () => clearTimeout(tooLate));
}

/** Sends a response at the reader's pace. When the reader leaves, the response's stream is cancelled. */
async function answer(fetch: Fetch, request: Request, outgoing: ServerResponse): Promise<void> {
  try {
    const { status, headers, body } = await fetch(request);
    if (outgoing.destroyed) return await body?.cancel();
    outgoing.writeHead(status, [...headers].flat());
    if (body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(body as never), outgoing);
  } catch {
    // A body that breaks off must not look complete.
    outgoing.destroy();
  }
}

/** The part of an HTTP server that the service uses; Bun's server has it as well. */
export type Server = Awaited<ReturnType<typeof serveByNode>>;
