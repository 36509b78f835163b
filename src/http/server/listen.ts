import { isIPv6 } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { HttpConfig } from "../../config/http.ts";
import { findFreePort } from "../../platform/free-port.ts";
import { isBun } from "../../platform/bun-or-node.ts";
import type { App } from "../app.ts";
import type { LoadShedding } from "../access/load-shedding.ts";

/**
 * Body size limit of the server itself, too large to matter. The routes limit bodies and answer with a problem; the
 * server's refusal would be empty.
 */
const SERVER_BODY_BYTES_MAX = 2 ** 30;

/** Seconds without a byte after which a connection is closed. Requests that wait for a run or for X are exempt. */
const IDLE_TIMEOUT_S = 20;

/** Time that a stopping service gives callers that are still sending a request. */
const GRACE_MS = 1_000;

/** How often a stopping server checks whether requests are still in flight. */
const LOOK_MS = 50;

/**
 * Serves the app until it is disposed, then answers what is in flight and stops. It waits neither for a caller that
 * stopped in the middle of its request nor for a reader of a stream: one of them would prevent an orderly stop.
 */
export async function listen(
  app: App,
  { host, port }: { readonly host: string; readonly port: number },
  load: LoadShedding,
  idleTimeout: number = IDLE_TIMEOUT_S,
): Promise<AsyncDisposable> {
  const address = { hostname: host, port, idleTimeout };
  if (isBun) {
    app.listen({ ...address, reusePort: false, maxRequestBodySize: SERVER_BODY_BYTES_MAX });
  } else {
    const { serveByNode } = await import("./node-server.ts");
    Object.assign(app, { server: await serveByNode(app.fetch, address) });
  }
  return {
    async [Symbol.asyncDispose]() {
      const { server } = app;
      const answered = async (): Promise<void> => {
        while ((server?.pendingRequests ?? 0) > load.coming + load.streams) await wait(LOOK_MS);
      };
      await Promise.race([app.stop(), wait(GRACE_MS).then(answered)]);
      await server?.stop(true);
    },
  };
}

/**
 * Replaces port 0 by a free one: values derived from it, such as the OAuth redirect, need the number before the start.
 */
export async function withPort(http: HttpConfig): Promise<HttpConfig> {
  if (http.port !== 0) return http;
  const port = await findFreePort(http.host);
  const publicUrl = http.publicUrl.endsWith(":0") ? `${http.publicUrl.slice(0, -2)}:${port}` : http.publicUrl;
  return { ...http, port, publicUrl };
}

export function listHosts({ host, publicUrl, allowedHosts }: HttpConfig, linkBase = publicUrl): ReadonlySet<string> {
  const bound = isIPv6(host) ? `[${host}]` : host;
  const names = [
    bound,
    "localhost",
    "127.0.0.1",
    "[::1]",
    new URL(publicUrl).hostname,
    new URL(linkBase).hostname,
    ...allowedHosts,
  ];
  return new Set(names.map((name) => name.toLowerCase().replace(/(?<=[^:\]]):\d+$|(?<=\]):\d+$/, "")));
}
