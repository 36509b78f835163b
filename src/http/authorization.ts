import { linkAccount, type Linked, type LinkDeps } from "../account/link.ts";
import { OAuthError, type Authorization } from "../account/oauth.ts";
import type { UsedStates } from "../account/used-states.ts";
import type { EventMetadata } from "../log/event-log.ts";
import { json, redirect, type Answer } from "./answer.ts";
import type { AuthCookie } from "./auth-cookie.ts";
import { readCookie } from "./cookie.ts";
import { Problem, problemOf, problems } from "./problem.ts";

/** Where the browser goes after an authorization. */
const CONSOLE_PATH = "/";

/** Answers of the OAuth dance are nobody else's business: no cache, no referrer. */
const CLOSED_PAGE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

interface XDeps extends LinkDeps {
  readonly cookie: AuthCookie;
  readonly states: UsedStates;
}

/** Undefined: X is not configured. */
export type AuthorizationDeps = XDeps | undefined;

/** The account's part of the outreach agent: who it acts for. */
export function createAuthorization(deps: AuthorizationDeps) {
  const configured = () => {
    if (deps === undefined) throw problems.xNotConfigured();
    return deps;
  };
  /** What is being linked, by the redirect that brought it: a browser that asks again meanwhile waits for the same. */
  const underway = new Map<string, Promise<Linked | undefined>>();
  const linkOnce = (x: XDeps, redirectGiven: URLSearchParams, begun: Authorization, metadata: EventMetadata) => {
    const key = redirectGiven.toString();
    const linking = underway.get(key) ?? link(x, redirectGiven, begun, metadata).finally(() => underway.delete(key));
    underway.set(key, linking);
    return linking;
  };

  return {
    async auth(): Promise<Answer> {
      const { oauth, cookie } = configured();
      const { url, ...authorization } = await oauth.begin();
      return redirect(302, url, { "set-cookie": cookie.encrypt(authorization), ...CLOSED_PAGE });
    },

    async callback(request: Request, metadata: EventMetadata): Promise<Answer> {
      const x = configured();
      const given = new URL(request.url).searchParams;
      const authorization = x.cookie.open(readCookie(request, x.cookie.name));
      if (authorization === undefined) throw refused("This browser has no authorization in progress.", CLOSED_PAGE);
      // The cookie stays: whoever lured the browser here does not end what it has begun.
      if (given.get("state") !== authorization.state) throw refused("The state is not the one we gave.", CLOSED_PAGE);
      const headers = { ...CLOSED_PAGE, "set-cookie": x.cookie.cleared };
      const linked = await linkOnce(x, given, authorization, metadata).catch((fault: unknown) => {
        throw callbackFault(fault, headers);
      });
      if (linked === undefined) throw refused("This state was used before.", headers);
      if (linked.kind === "wrong_account") throw withHeaders(problems.wrongAccount(), headers);
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

/** Undefined when the state was used before, and not by this very redirect for the account that is linked. */
async function link(
  x: XDeps,
  given: URLSearchParams,
  authorization: Authorization,
  metadata: EventMetadata,
): Promise<Linked | undefined> {
  if (!x.states.claim(authorization.state)) return linkedBefore(x, given);
  const linked = await linkAccount(x, given, authorization, metadata);
  if (linked.kind === "linked") x.states.finish(given, linked.user.id);
  return linked;
}

/** For a browser that did not hear of its success: its connection broke, or it sent the redirect twice. */
async function linkedBefore(
  { states, projector, eventLog }: XDeps,
  given: URLSearchParams,
): Promise<Linked | undefined> {
  // Another instance may have finished it.
  await projector.until((await eventLog.store.head()).position);
  const { user, scopes, authorized } = projector.state("account");
  const isFinished = authorized && user !== null && states.isFinished(given, user.id);
  return isFinished ? { kind: "linked", user, scopes } : undefined;
}

function refused(detail: string, headers: Record<string, string>): Problem {
  return withHeaders(problems.authorizationFailed(detail), headers);
}

function callbackFault(fault: unknown, headers: Record<string, string>): unknown {
  if (fault instanceof OAuthError && fault.kind === "rejected")
    return refused(`The network answered: ${fault.message}.`, headers);
  const problem = fault instanceof OAuthError ? problems.networkFailed(fault.message) : problemOf(fault);
  return problem === undefined ? fault : withHeaders(problem, headers);
}

function withHeaders(problem: Problem, headers: Record<string, string>): Problem {
  const { status, slug, title, message, more } = problem;
  return new Problem(status, slug, title, message, { headers: { ...problem.headers, ...headers }, more });
}

function wantsJson(request: Request): boolean {
  return request.headers.get("accept")?.includes("application/json") ?? false;
}
