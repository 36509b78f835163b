import { isLoopback } from "../../config/check-urls-and-plain-http.ts";
import { ANONYMOUS, bearerToken, type Authentication } from "./bearer-tokens.ts";
import type { Arrival, Endpoint } from "../server/endpoint.ts";
import type { LoadShedding } from "./limit-requests-and-streams.ts";
import { INVALID_TOKEN, problems } from "../server/problem.ts";
import type { FailureLimit } from "./failed-authentication-limit.ts";
import { setRateLimitHeaders, type RateLimit } from "./rate-limit.ts";
import type { Sessions } from "./session.ts";

export interface AdmissionContext {
  readonly authentication: Authentication;
  /** Host names (without ports, lower case) that the service answers to. */
  readonly hosts: ReadonlySet<string>;
  /**
   * True if the service listens on an address that only this machine can reach, so that no other machine can call it.
   */
  readonly isLocal: boolean;
  readonly anonymousLimit: RateLimit;
  readonly failureLimit: FailureLimit;
  readonly load: LoadShedding;
  readonly sessions: Sessions;
}

export interface Caller {
  readonly name: string;
  /** The domains for whose links the caller's token may record clicks. Absent: all domains. */
  readonly links?: readonly string[];
}

const STRANGER: Caller = { name: ANONYMOUS };

/** Creates the functions that decide which requests are served. They throw a problem to refuse one. */
export function createAdmission(context: AdmissionContext) {
  let goodHost: string | undefined;
  return {
    /**
     * Refuses a request whose `Host` header does not name this service. `endpoint` is undefined if no endpoint has the
     * request's path.
     */
    checkHost(endpoint: Endpoint | undefined, { headers }: Request): void {
      const host = headers.get("host") ?? "";
      // Nearly all requests name the same host, so the last good one is compared before the set of hosts is searched.
      if (host === goodHost) return;
      if (context.hosts.has(host.toLowerCase().replace(/:\d+$/, ""))) goodHost = host;
      else if (endpoint?.anyHost !== true) throw problems.misdirected();
    },
    /**
     * Refuses a request if the service is overloaded or its caller may not make it. Returns the caller; for a wrong
     * token, a promise that rejects. `pending`: number of requests in flight, including this one.
     */
    admit(arrival: Arrival, pending: number): Caller | Promise<never> {
      if (arrival.endpoint.exemptFromLoadShedding !== true) context.load.admit(pending);
      const authorization = arrival.request.headers.get("authorization");
      return authorization === null ? anonymous(context, arrival) : authenticated(context, arrival, authorization);
    },
  };
}

/**
 * Admits a caller without a token. Throws 401 where a token is required, 403 for a request from a page of another site,
 * and 429 over the rate limit.
 */
function anonymous(context: AdmissionContext, arrival: Arrival): Caller {
  const { authentication, hosts, isLocal, anonymousLimit } = context;
  const { endpoint, request, readAddress, headers } = arrival;
  if (authentication.guards(endpoint)) throw problems.unauthorized();
  if (isBehindAPage(endpoint, request) && isOfForeignSite(request, hosts)) throw problems.foreignSite();
  // Only the rate limit needs the caller's address, which must be asked of the socket. A service that only this machine
  // can reach has no such limit, so it does not ask.
  const address = isLocal ? undefined : readAddress();
  if (address !== undefined && !isLoopback(address)) {
    const wait = anonymousLimit.take(address);
    setRateLimitHeaders(headers, "anonymous", anonymousLimit.allowance(address));
    if (wait !== undefined) throw problems.tooMany(wait);
  }
  // A console page without a session is answered with the form to sign in, so it is not refused here.
  const isRead = endpoint.protection === "session" && endpoint.tag !== "console";
  if (isRead && !context.sessions.admits(request)) throw problems.unauthorized();
  return endpoint.protection === "form" ? admitForm(context, arrival) : STRANGER;
}

/**
 * Admits a form of a browser that signed in to the console. The request gets the scopes and name of the token of its
 * session. Throws 401 without a session, and 403 if the token lacks the scope or the browser may not send forms.
 */
function admitForm({ authentication, sessions }: AdmissionContext, { endpoint, request }: Arrival): Caller {
  if (!sessions.admits(request)) throw problems.unauthorized();
  const token = sessions.tokenOf(request);
  if (token !== undefined) authentication.check(token, endpoint.scope);
  if (sessions.formToken(request) === undefined) throw problems.foreignSite();
  return token ?? STRANGER;
}

/**
 * True if no page of another site may send this request: a POST, or a read in a browser session that is not a page
 * opened in a tab. Such a page could not read the answer, but could start one export after another.
 */
function isBehindAPage({ protection, anyOrigin }: Endpoint, { method, headers }: Request): boolean {
  if (anyOrigin === true) return false;
  return method === "POST" || (protection === "session" && headers.get("sec-fetch-mode") !== "navigate");
}

/**
 * True if a page of another site makes the browser send this request (CSRF). `Sec-Fetch-Site` tells; older browsers,
 * and browsers on plain http, send only `Origin`. Programs send neither header, so they pass.
 */
function isOfForeignSite({ headers }: Request, hosts: ReadonlySet<string>): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || !hosts.has(new URL(origin).hostname);
}

/**
 * Returns the caller whose token the request carries, however many wrong tokens others sent from the same address.
 * Throws 401 for a wrong or expired token, 429 after too many wrong ones, 403 for a token without the scope.
 */
function authenticated(
  { authentication, failureLimit }: AdmissionContext,
  { endpoint: { scope }, readAddress }: Arrival,
  authorization: string,
): Caller | Promise<never> {
  const given = bearerToken(authorization);
  const token = given === undefined ? undefined : authentication.identify(given);
  if (token === undefined) return refuseToken(failureLimit, authorization, readAddress());
  authentication.check(token, scope);
  return token;
}

/**
 * Refuses a wrong token: throws 401, or 429 if its address sent too many wrong ones. The 401 calls the token invalid
 * only if the header has the bearer scheme.
 */
async function refuseToken(failureLimit: FailureLimit, authorization: string, address: string): Promise<never> {
  const wait = await failureLimit.fail(address);
  if (wait !== undefined) throw problems.tooMany(wait);
  throw /^bearer +\S/i.test(authorization) ? problems.unauthorized().with(INVALID_TOKEN) : problems.unauthorized();
}
