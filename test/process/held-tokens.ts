import type { Installation } from "../harness/process.ts";

/** A way to X on which a refresh of the service takes as long as it takes others to meet with the stale token too. */
export interface HeldTokens extends Disposable {
  /** X's address for the others. */
  readonly beside: string;
  /**
   * Holds back the answer to the next refresh until `others` requests beside the service were refused; the refresh token
   * is used up at X then, and nobody has the new one. Resolves once the refresh is at X.
   */
  hold(others: number): Promise<void>;
}

export function holdTokens({ env, sandbox }: Installation): HeldTokens {
  let waitingFor = 0;
  let asked = Promise.withResolvers<void>();
  let met = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    // Commands take their time to start on a busy machine.
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const isBeside = pathname.startsWith("/beside/");
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      const lost = (): Response => new Response(null, { status: 502 });
      const path = isBeside ? pathname.slice("/beside".length) : pathname;
      const answer = await fetch(sandbox.url + path + search, { method, headers, body }).catch(lost);
      if (isBeside && answer.status === 401 && --waitingFor === 0) met.resolve();
      if (!isBeside && waitingFor > 0 && path.endsWith("/oauth2/token")) {
        asked.resolve();
        await met.promise;
      }
      return answer;
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  env["X_API_URL"] = `${origin}/x`;
  return {
    beside: `${origin}/beside/x`,
    hold(others) {
      [asked, met] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      waitingFor = others;
      return asked.promise;
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}
