import type { Installation } from "../harness/process.ts";

/** X's access tokens live two hours; the service thinks so too, by a clock of its own that stays where it is. */
export const PAST_LIFE_MS = 2 * 3_600_000 + 60_000;

/** Long enough that those who want a token meet with a refresh under way. */
const TOKEN_ANSWER_MS = 150;

const isTokenRequest = (path: string): boolean => path.endsWith("/oauth2/token");

interface Way {
  /** Sees each request before X does. */
  readonly arriving?: (path: string) => Promise<void> | void;
  /** Sees each answer before the process that asked: at X the request has taken effect. */
  readonly answered: (path: string, answer: Response) => Promise<void> | void;
}

/** Puts a way to X before the processes of an installation. */
function wayToX({ env, sandbox }: Installation, { arriving, answered }: Way) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    // Commands take their time to start on a busy machine.
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

/** The token endpoint's answers take their time: the refresh token is used up at X then, and no process has the new one. */
export function slowTokens(world: Installation): Disposable {
  return wayToX(world, {
    async answered(path) {
      if (isTokenRequest(path)) await Bun.sleep(TOKEN_ANSWER_MS);
    },
  });
}

/** A way to X on which a refresh of the service takes as long as it takes others to meet with the stale token too. */
export interface HeldTokens extends Disposable {
  /** X's address for the others. */
  readonly beside: string;
  /** Stops the first requests of so many others before they are at X. Resolves once all have come. */
  gather(others: number): Promise<void>;
  /**
   * Holds back the answer to the next refresh until so many others were refused, by default those that were gathered; the refresh token is used up at X then, and
   * no process has the new one. Resolves once the refresh is at X: then the others go on.
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
