import type { Installation } from "../harness/process.ts";

/** X's access tokens live two hours; the service thinks so too, by a clock of its own that stays where it is. */
export const PAST_LIFE_MS = 2 * 3_600_000 + 60_000;

/** Long enough that those who want a token meet with a refresh under way. */
const TOKEN_ANSWER_MS = 150;

const isTokenRequest = (path: string): boolean => path.endsWith("/oauth2/token");

/**
 * Puts a way to X before the processes of an installation. `answered` sees each answer before who asked does: at X it has
 * taken effect then.
 */
function wayToX({ env, sandbox }: Installation, answered: (path: string, answer: Response) => Promise<void>) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    // Commands take their time to start on a busy machine.
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
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

/** The token endpoint's answers take their time: the refresh token is used up at X then, and nobody has the new one. */
export function slowTokens(world: Installation): Disposable {
  return wayToX(world, async (path) => {
    if (isTokenRequest(path)) await Bun.sleep(TOKEN_ANSWER_MS);
  });
}

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

export function holdTokens(world: Installation): HeldTokens {
  let waitingFor = 0;
  let asked = Promise.withResolvers<void>();
  let met = Promise.withResolvers<void>();
  const way = wayToX(world, async (path, { status }) => {
    const isBeside = path.startsWith("/beside/");
    if (isBeside && status === 401 && --waitingFor === 0) met.resolve();
    if (isBeside || waitingFor <= 0 || !isTokenRequest(path)) return;
    asked.resolve();
    await met.promise;
  });
  return {
    beside: `${way.origin}/beside/x`,
    hold(others) {
      [asked, met] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      waitingFor = others;
      return asked.promise;
    },
    [Symbol.dispose]: () => way[Symbol.dispose](),
  };
}
