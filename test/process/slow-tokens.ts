import type { Installation } from "../harness/process.ts";

/** Long enough that those who want a token meet with a refresh under way. */
const TOKEN_ANSWER_MS = 150;

/**
 * Puts a way to X before the world's processes on which the token endpoint's answers take their time: the refresh token
 * is used up at X then, and nobody has the new one.
 */
export function slowTokens({ env, sandbox }: Installation): Disposable {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      const lost = (): Response => new Response(null, { status: 502 });
      const answer = await fetch(sandbox.url + pathname + search, { method, headers, body }).catch(lost);
      if (pathname.endsWith("/oauth2/token")) await Bun.sleep(TOKEN_ANSWER_MS);
      return answer;
    },
  });
  env["X_API_URL"] = `http://127.0.0.1:${server.port}/x`;
  return { [Symbol.dispose]: () => void server.stop(true) };
}
