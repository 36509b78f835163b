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
  /** Host names (without ports, lower case) under which the service may be asked. */
  readonly hosts: ReadonlySet<string>;
  /** Whether only this machine can reach the service. */
  readonly isLocal: boolean;
  readonly anonymousLimit: RateLimit;
  readonly failureLimit: FailureLimit;
  readonly load: LoadShedding;
  readonly sessions: Sessions;
}

/** A request before it is known who calls; `headers` are those of its answer. */
type Arrival = Pick<RequestContext, "request" | "endpoint" | "headers" | "readAddress">;

/** Who calls, and the domains whose clicks they may record; absent: all. */
export type Caller = Pick<ApiToken, "name" | "links">;

const STRANGER: Caller = { name: ANONYMOUS };

/** Decides which requests are served. Its functions throw the problem of a refused one. */
export function createAdmission(deps: AdmissionDeps) {
  let goodHost: string | undefined;
  return {
    /** Refuses a host that is not ours; `endpoint`: undefined where nothing is. */
    checkHost(endpoint: Endpoint | undefined, { headers }: Request): void {
      const host = headers.get("host") ?? "";
      // Nearly all requests name the same host: the last good one needs no second look.
      if (host === goodHost) return;
      if (deps.hosts.has(host.toLowerCase().replace(/:\d+$/, ""))) goodHost = host;
      else if (endpoint?.anyHost !== true) throw problems.misdirected();
    },
    /**
     * Refuses under overload, then callers without permission; returns the caller, at once unless the token is
     * wrong. `pending`: the requests in flight, this one included.
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
  // The address costs a call into the socket: not asked for where all callers are on this machine.
  const address = isLocal ? undefined : readAddress();
  if (address !== undefined && !isLoopback(address)) {
    const wait = anonymousLimit.take(address);
    setRateLimitHeaders(headers, "anonymous", anonymousLimit.allowance(address));
    if (wait !== undefined) throw problems.tooMany(wait);
  }
  // A page of the console asks for a token itself.
  const isRead = endpoint.protection === "session" && endpoint.tag !== "console";
  if (isRead && !deps.sessions.admits(request)) throw problems.unauthorized();
  return endpoint.protection === "form" ? admitForm(deps, arrival) : STRANGER;
}

/**
 * A signed-in operator acts with the scopes of their token, and in its name. Throws 401 for a form without a session, and
 * 403 for a token without the scope or a form that no page of ours can have shown to this browser, before any of it is
 * read.
 */
function admitForm({ authentication, sessions }: AdmissionDeps, { endpoint, request }: Arrival): Caller {
  if (!sessions.admits(request)) throw problems.unauthorized();
  const token = sessions.tokenOf(request);
  if (token !== undefined) authentication.check(token, endpoint.scope);
  if (sessions.formToken(request) === undefined) throw problems.foreignSite();
  return token ?? STRANGER;
}

/**
 * What only pages of ours have a reason to send: whatever changes something, and each reading of the console that is no
 * page opened in a tab. A foreign page could not read the answer, but start one export after the other.
 */
function isBehindAPage({ protection }: Endpoint, { method, headers }: Request): boolean {
  return method === "POST" || (protection === "session" && headers.get("sec-fetch-mode") !== "navigate");
}

/**
 * Whether a browser sends this for a page of another site (CSRF): a form or script anywhere can make it POST without a
 * body, and to this machine too. `Sec-Fetch-Site` says so; older browsers, and all over plain http but to this machine,
 * have only `Origin`. Programs send neither.
 */
function isOfForeignSite({ headers }: Request, hosts: ReadonlySet<string>): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || !hosts.has(new URL(origin).hostname);
}

/**
 * The caller with this token, whatever others failed with from the same address. Throws 401 for a wrong or expired one on
 * any path, 429 after too many wrong ones, and 403 for one without the scope.
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

/** A header of another scheme brings no token. */
async function refuseToken(failureLimit: FailureLimit, authorization: string, address: string): Promise<never> {
  const wait = await failureLimit.fail(address);
  if (wait !== undefined) throw problems.tooMany(wait);
  throw /^bearer +\S/i.test(authorization) ? problems.unauthorized().with(INVALID_TOKEN) : problems.unauthorized();
}
