import { createHash } from "node:crypto";
import { linkAccount, type LinkDeps } from "../account/link.ts";
import { OAuthError } from "../account/oauth.ts";
import type { Cause, Journal } from "../journal.ts";
import { json, redirect, type Answer } from "./answer.ts";
import { clearCookie, readCookie, type AuthCookie } from "./auth-cookie.ts";
import { Problem, problems } from "./problem.ts";

/** A used state stays used for as long as its cookie could come back. */
const STATE_TTL_MS = 10 * 60_000;

/** Where the browser goes after an authorization. */
const CONSOLE_PATH = "/";

/** Answers of the OAuth dance are nobody else's business: no cache, no referrer. */
const CLOSED_PAGE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

/** Undefined: X is not configured. */
export type AuthorizationDeps = (LinkDeps & { readonly cookie: AuthCookie }) | undefined;

/** The account's part of the outreach agent: who it acts for. */
export function createAuthorization(deps: AuthorizationDeps) {
  const configured = () => {
    if (deps === undefined) throw problems.xNotConfigured();
    return deps;
  };

  return {
    async auth(): Promise<Answer> {
      const { oauth, cookie } = configured();
      const { url, ...authorization } = await oauth.begin();
      return redirect(302, url, { "set-cookie": cookie.seal(authorization), ...CLOSED_PAGE });
    },

    async callback(request: Request, cause: Cause): Promise<Answer> {
      const x = configured();
      const given = new URL(request.url).searchParams;
      const authorization = x.cookie.open(readCookie(request, x.cookie.name));
      if (authorization === undefined) throw refusedCallback("This browser has no authorization in progress.");
      if (given.get("state") !== authorization.state) throw refusedCallback("The state is not the one we gave.");
      if (!(await claim(x.journal, authorization.state))) throw refusedCallback("This state was used before.");
      const linked = await linkAccount(x, given, authorization, cause).catch(asCallbackProblem);
      if (linked.kind === "wrong_account") throw problems.wrongAccount();
      const headers = { "set-cookie": clearCookie(x.cookie.name), ...CLOSED_PAGE };
      if (wantsJson(request)) return json(200, { ...linked.user, scopes: linked.scopes }, headers);
      return redirect(303, CONSOLE_PATH, headers);
    },

    async me(): Promise<Answer> {
      if (deps === undefined || !deps.projector.state("account").authorized) throw problems.notAuthorized();
      const { tokens, network } = deps;
      const { id, username, name } = await tokens.use((token) => network.me(token));
      return json(200, { id, username, name });
    },
  };
}

function refusedCallback(detail: string): Problem {
  return new Problem(400, "authorization-failed", "Authorization failed", `${detail} Nothing was stored.`);
}

function asCallbackProblem(fault: unknown): never {
  if (!(fault instanceof OAuthError)) throw fault;
  if (fault.kind === "unreachable") throw problems.networkFailed(fault.message);
  throw refusedCallback(`The network answered: ${fault.message}.`);
}

/** Marks a state as used, over restarts and instances; false when it was. */
async function claim(journal: Journal, state: string): Promise<boolean> {
  const name = `oauth-state/${createHash("sha256").update(state).digest("hex")}`;
  // Each claim is a holder of its own, so that nobody renews another's.
  const lease = await journal.store.leases.acquire(name, { holder: crypto.randomUUID(), ttlMs: STATE_TTL_MS });
  return lease !== undefined;
}

function wantsJson(request: Request): boolean {
  return request.headers.get("accept")?.includes("application/json") ?? false;
}
