import type { ApiToken } from "../../config/tokens.ts";
import { isLoopback } from "../../config/urls.ts";
import { ANONYMOUS, bearerToken, type Authentication } from "./bearer-tokens.ts";
import type { Endpoint, RequestContext } from "../server/endpoint.ts";
import type { LoadShedding } from "./load-shedding.ts";
import { INVALID_TOKEN, problems } from "../server/problem.ts";
import type { FailureLimit } from "./failure-limit.ts";
import { setRateLimitHeaders, type RateLimit } from "./rate-limit.ts";
import type { Sessions } from "./session.ts";

export interface AdmissionDeps {
  readonly authentication: Authentication;
  /** Host names (without ports, lower case) that the service answers to. */
  readonly hosts: ReadonlySet<string>;
  /** True if only this machine can reach the service. */
  readonly isLocal: boolean;
  readonly anonymousLimit: RateLimit;
  readonly failureLimit: FailureLimit;
  readonly load: LoadShedding;
  readonly sessions: Sessions;
}

/** A request whose caller is not known yet; `headers` are those of its answer. */
type Arrival = Pick<RequestContext, "request" | "endpoint" | "headers" | "readAddress">;

/** The caller, and the domains whose clicks they may record (all if absent). */
export type Caller = Pick<ApiToken, "name" | "links">;

const STRANGER: Caller = { name: ANONYMOUS };

/** Decides which requests are served. Its functions throw a problem to refuse one. */
export function createAdmission(deps: AdmissionDeps) {
  let goodHost: string | undefined;
  return {
    /** Refuses a host that is not ours. `endpoint` is undefined if the path has none. */
    checkHost(endpoint: Endpoint | undefined, { headers }: Request): void {
      const host = headers.get("host") ?? "";
      // Nearly all requests name the same host, so the last good one is not looked up again.
      if (host === goodHost) return;
      if (deps.hosts.has(host.toLowerCase().replace(/:\d+$/, ""))) goodHost = host;
      else if (endpoint?.anyHost !== true) throw problems.misdirected();
    },
    /**
     * Refuses requests under overload, then callers without permission. Returns the caller, synchronously unless the
     * token is wrong. `pending` counts the requests in flight, including this one.
     */
    admit(arrival: Arrival, pending: number): Caller | Promise<never> {
      if (arrival.endpoint.exemptFromLoadShedding !== true) deps.load.admit(pending);
      const authorization = arrival.request.headers.get("authorization");
      return authorization === null ? anonymous(deps, arrival) : authenticated(deps, arrival, authorization);
    },
  };
}

/** Admits a caller without a token. Throws 401 where one is required, 403 for a page of another site, and 429. */
function anonymous(deps: AdmissionDeps, arrival: Arrival): Caller {
  const { authentication, hosts, isLocal, anonymousLimit } = deps;
  const { endpoint, request, readAddress, headers } = arrival;
  if (authentication.guards(endpoint)) throw problems.unauthorized();
  if (isBehindAPage(endpoint, request) && isOfForeignSite(request, hosts)) throw problems.foreignSite();
  // Reading the address costs a call into the socket, so it is skipped where all callers are on this machine.
  const address = isLocal ? undefined : readAddress();
  if (address !== undefined && !isLoopback(address)) {
    const wait = anonymousLimit.take(address);
    setRateLimitHeaders(headers, "anonymous", anonymousLimit.allowance(address));
    if (wait !== undefined) throw problems.tooMany(wait);
  }
  // Console pages are admitted: they ask for a token themselves.
  const isRead = endpoint.protection === "session" && endpoint.tag !== "console";
  if (isRead && !deps.sessions.admits(request)) throw problems.unauthorized();
  return endpoint.protection === "form" ? admitForm(deps, arrival) : STRANGER;
}

/**
 * Admits a signed-in operator, with the scopes and in the name of their token. Throws 401 without a session, and 403 if
 * the token lacks the scope or no page of ours can have shown this browser a form. Runs before the body is read.
 */
function admitForm({ authentication, sessions }: AdmissionDeps, { endpoint, request }: Arrival): Caller {
  if (!sessions.admits(request)) throw problems.unauthorized();
  const token = sessions.tokenOf(request);
  if (token !== undefined) authentication.check(token, endpoint.scope);
  if (sessions.formToken(request) === undefined) throw problems.foreignSite();
  return token ?? STRANGER;
}

/**
 * True if only our own pages have a reason to send this: every POST, and session-protected reads other than a page
 * opened in a tab. A foreign page could not read the answer, but it could start one export after another.
 */
function isBehindAPage({ protection }: Endpoint, { method, headers }: Request): boolean {
  return method === "POST" || (protection === "session" && headers.get("sec-fetch-mode") !== "navigate");
}

/**
 * True if a page of another site makes the browser send this (CSRF), as a form or script can, even to this machine.
 * `Sec-Fetch-Site` tells; older browsers, and all on plain http to other machines, send only `Origin`, and programs
 * neither.
 */
function isOfForeignSite({ headers }: Request, hosts: ReadonlySet<string>): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || !hosts.has(new URL(origin).hostname);
}

/**
 * Returns the caller with this token, even if others failed from the same address. Throws 401 for a wrong or expired
 * token on any path, 429 after too many wrong ones, and 403 for one without the scope.
 */
function authenticated(
  { authentication, failureLimit }: AdmissionDeps,
  { endpoint: { scope }, readAddress }: Arrival,
  authorization: string,
): Caller | Promise<never> {
  const given = bearerToken(authorization);
  const token = given === undefined ? undefined : authentication.identify(given);
  if (token === undefined) return refuseToken(failureLimit, authorization, readAddress());
  authentication.check(token, scope);
  return token;
}

/** Throws 401, or 429 over the limit. The 401 calls the token invalid only if the header is a bearer header. */
async function refuseToken(failureLimit: FailureLimit, authorization: string, address: string): Promise<never> {
  const wait = await failureLimit.fail(address);
  if (wait !== undefined) throw problems.tooMany(wait);
  throw /^bearer +\S/i.test(authorization) ? problems.unauthorized().with(INVALID_TOKEN) : problems.unauthorized();
}
