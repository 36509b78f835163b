import { graphError } from "../../sandbox/graph.ts";

/** Stands before the sandbox's Meta and finds fault with events that the sandbox would take. */
export interface PickyMeta extends AsyncDisposable {
  readonly url: string;
  /** So many events were in each request. */
  readonly sizes: readonly number[];
}

/** Refuses each request that holds an event whose address contains `bad`. */
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
      // The service may be killed meanwhile, and this request with it.
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
