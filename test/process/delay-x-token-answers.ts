import type { Installation } from "../harness/process.ts";

/**
 * Time by which X's clock advances: longer than the two hours that access tokens of X are valid. The service's own
 * clock stands still, so the service takes its tokens for valid.
 */
export const PAST_LIFE_MS = 2 * 3_600_000 + 60_000;

/**
 * Delay of the token endpoint's answer, long enough for other callers to need a token while a refresh is in progress.
 */
const TOKEN_ANSWER_MS = 150;

const isTokenRequest = (path: string): boolean => path.endsWith("/oauth2/token");

interface Way {
  /** Called for each request before X receives it. */
  readonly arriving?: (path: string) => Promise<void> | void;
  /** Called for each answer before the asking process receives it; the request has already taken effect at X. */
  readonly answered: (path: string, answer: Response) => Promise<void> | void;
}

/** Puts a proxy between X and the processes of an installation. */
function wayToX({ env, sandbox }: Installation, { arriving, answered }: Way) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    // A connection to the proxy may be idle for long, because commands start slowly on a busy machine.
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      await arriving?.(pathname);
      const lost = (): Response => new Response(null, { status: 502 });
      const path = pathname.replace(/^\/beside/, "");
      const answer = await fetch(sandbox.url + path + search, { method, headers, body }).catch(lost);
      await answered(pathname, answer);
      return answer;
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  env["X_API_URL"] = `${origin}/x`;
  return { origin, [Symbol.dispose]: () => void server.stop(true) };
}

/**
 * Delays the answers of the token endpoint. During the delay X has used up the refresh token, and no process has the
 * new one yet.
 */
export function slowTokens(world: Installation): Disposable {
  return wayToX(world, {
    async answered(path) {
      if (isTokenRequest(path)) await Bun.sleep(TOKEN_ANSWER_MS);
    },
  });
}

/** A proxy to X that delays the service's refresh until other processes have used the stale token too. */
export interface HeldTokens extends Disposable {
  /** Address at which the other processes reach X through the proxy. */
  readonly beside: string;
  /**
   * Holds back the first request of `others` other processes. Resolves once that many requests have arrived at the
   * proxy.
   */
  gather(others: number): Promise<void>;
  /**
   * Delays X's answer to the service's next refresh until X refused `others` requests (default: the number given to
   * `gather`). Resolves once X has used up the refresh token; gathered requests then reach X with the stale token.
   */
  hold(others?: number): Promise<void>;
}

export function holdTokens(world: Installation): HeldTokens {
  let [others, missing, unrefused] = [0, 0, 0];
  let gathered = Promise.withResolvers<void>();
  let asked = Promise.withResolvers<void>();
  let refused = Promise.withResolvers<void>();
  const isBeside = (path: string): boolean => path.startsWith("/beside/");
  const way = wayToX(world, {
    async arriving(path) {
      if (!isBeside(path) || missing === 0) return;
      if (--missing === 0) gathered.resolve();
      await asked.promise;
    },
    async answered(path, { status }) {
      if (isBeside(path) && status === 401 && --unrefused === 0) refused.resolve();
      if (isBeside(path) || unrefused <= 0 || !isTokenRequest(path)) return;
      asked.resolve();
      await refused.promise;
    },
  });
  return {
    beside: `${way.origin}/beside/x`,
    gather(count) {
      gathered = Promise.withResolvers<void>();
      asked = Promise.withResolvers<void>();
      others = missing = count;
      return gathered.promise;
    },
    hold(count = others) {
      refused = Promise.withResolvers<void>();
      unrefused = count;
      return asked.promise;
    },
    [Symbol.dispose]: () => way[Symbol.dispose](),
  };
}
