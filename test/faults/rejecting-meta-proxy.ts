import { graphError } from "../../sandbox/refuse-like-meta-graph-api.ts";

/** A proxy in front of the sandbox's Meta that rejects some events which the sandbox would accept. */
export interface PickyMeta extends AsyncDisposable {
  readonly url: string;
  /** Number of events in each request that the proxy received. */
  readonly sizes: readonly number[];
}

/** Starts a proxy to Meta that refuses each request with an event whose address contains `bad`. */
export function startPickyMeta(metaUrl: string, bad: string): PickyMeta {
  const sizes: number[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = await request.text();
      const { data } = JSON.parse(body) as { data: readonly { readonly event_source_url: string }[] };
      sizes.push(data.length);
      if (data.some(({ event_source_url }) => event_source_url.includes(bad))) {
        return graphError(400, 100, "Invalid parameter");
      }
      // A kill of the service may cut this request off.
      return fetch(metaUrl + pathname, { method: "POST", body, headers: { "content-type": "application/json" } });
    },
  });
  return {
    url: server.url.origin,
    sizes,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}
