import { isIPv6 } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { HttpConfig } from "../../config/http.ts";
import { findFreePort } from "../../platform/free-port.ts";
import { isBun } from "../../platform/bun-or-node.ts";
import type { App } from "../app.ts";
import type { LoadShedding } from "../access/load-shedding.ts";

/** Bodies are bounded by the routes, whose answer is a problem; the server's own refusal would be an empty one. */
const SERVER_BODY_BYTES_MAX = 2 ** 30;

/** Seconds without a byte after which a connection is closed; requests that wait for a run or for X are excepted. */
const IDLE_TIMEOUT_S = 20;

/** For those who are in the midst of sending a request when the service stops. */
const GRACE_MS = 1_000;

/** How often a stopping server is asked whether anything is still being answered. */
const LOOK_MS = 50;

/**
 * Serves the app until it is disposed; then answers what is in flight and stops. It waits neither for a caller that
 * stopped in the middle of its request nor for a reader of a stream: one of them would keep the service from stopping in
 * order.
 */
export async function listen(
  app: App,
  { host, port }: Pick<HttpConfig, "host" | "port">,
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

/** Port 0 stands for any free one; what is made from it (the OAuth redirect) needs the number before the start. */
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
