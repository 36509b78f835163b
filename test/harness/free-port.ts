/** A port that nobody has now, for a service that cannot say which one it took. */
export function freePort(): number {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  return server.port ?? 0;
}
