import type { SelfSigned } from "../../networks/self-signed.ts";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { createSafeFetch, type SafeFetch } from "../../../src/networks/safe-fetch.ts";

/** HTTP request as the test's server received it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly body: string;
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: Seen[];
}

/** Starts an HTTP server on loopback that gives the test's answers and records requests; with `tls` it speaks HTTPS. */
export function serve(
  answer: (seen: Seen, nth: number) => Response | Promise<Response>,
  secure: { readonly tls?: SelfSigned } = {},
): TestServer {
  const requests: Seen[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...secure,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const body = await request.text();
      const seen = { method: request.method, path: pathname, query: searchParams, headers: request.headers, body };
      requests.push(seen);
      return answer(seen, requests.length);
    },
  });
  return {
    url: `${secure.tls === undefined ? "http" : "https"}://127.0.0.1:${server.port}`,
    requests,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

export interface RawServer extends AsyncDisposable {
  readonly url: string;
  /** Returns the number of bytes received over all connections. */
  readonly received: () => number;
}

/**
 * Starts a TCP server on loopback for behaviour that no HTTP server shows. `onRequest` is called when the first bytes
 * of a connection arrive.
 */
export async function serveRaw(onRequest: (socket: Socket) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  let received = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => (received += bytes.length));
    socket.once("data", () => onRequest(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Returns an address of this machine on which no server listens. */
export async function deadUrl(): Promise<string> {
  const server = await serveRaw(() => undefined);
  await server[Symbol.asyncDispose]();
  return server.url;
}

export function safeFetchTo(...urls: string[]): SafeFetch {
  return createSafeFetch({ allowedOrigins: urls });
}

/** Builds an HTTP answer in the form that is passed to the functions which classify the networks' answers. */
export function answer(status: number, body: unknown = "", headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { status, text, headers: new Headers(headers), truncated: false };
}
