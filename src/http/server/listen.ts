import { isIPv6 } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { HttpConfig } from "../../config/http.ts";
import { reservePort } from "../../platform/free-port.ts";
import { isBun } from "../../platform/runtime-environment-and-env-files.ts";
import type { App } from "../app.ts";
import type { LoadShedding } from "../access/limit-requests-and-streams.ts";

/**
 * Maximum body size that the server itself allows, in bytes. No body reaches it, because the routes have lower limits
 * and answer with a problem, while the server's own refusal would have no content.
 */
const SERVER_BODY_BYTES_MAX = 2 ** 30;

/**
 * Time in seconds without a byte after which a connection is closed. It does not apply to requests that wait for a run
 * or for X.
 */
const IDLE_TIMEOUT_S = 20;

/** Time in ms that a stopping service gives to callers whose request has not arrived completely. */
const GRACE_MS = 1_000;

/** Time in ms between two checks if a stopping server still has requests in flight. */
const LOOK_MS = 50;

/**
 * Serves the app until it is disposed; then answers the requests in flight and stops. It does not wait for callers that
 * stopped in the middle of a request, or for readers of streams, which may never end.
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
 * Replaces port 0 by a free port, because values such as the OAuth redirect contain the number before the service
 * listens. No other program can take the port until `reserved` is disposed, which must precede {@link listen}.
 */
export async function withPort(http: HttpConfig): Promise<{ http: HttpConfig; reserved: AsyncDisposable }> {
  if (http.port !== 0) return { http, reserved: new AsyncDisposableStack() };
  const reserved = await reservePort(http.host);
  const { port } = reserved;
  const publicUrl = http.publicUrl.endsWith(":0") ? `${http.publicUrl.slice(0, -2)}:${port}` : http.publicUrl;
  return { http: { ...http, port, publicUrl }, reserved };
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
