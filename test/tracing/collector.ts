/** A span in the JSON of OTLP, with the members that the tests use. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number };
}

interface Posted {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly CollectedSpan[] }[] }[];
}

export interface Collector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** Bodies that were posted to the collector, as text. */
  readonly posted: readonly string[];
}

/** Starts a collector that receives OTLP over HTTP. */
export function startCollector(): Collector {
  const spans: CollectedSpan[] = [];
  const posted: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const text = await request.text();
      if (new URL(request.url).pathname !== "/v1/traces") return new Response(null, { status: 404 });
      posted.push(text);
      for (const { scopeSpans } of (JSON.parse(text) as Posted).resourceSpans)
        for (const scope of scopeSpans) spans.push(...scope.spans);
      return Response.json({});
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    posted,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

export function attributesOf({ attributes }: CollectedSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
