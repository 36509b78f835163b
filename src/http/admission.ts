import { bearer } from "@elysiajs/bearer";
import { Elysia } from "elysia";
import type { MakeId } from "../platform/clock.ts";
import { isLoopback } from "../config/urls.ts";
import type { EventMetadata } from "../log/event-log.ts";
import { ANONYMOUS, canonicalBearer, type Authentication } from "./auth.ts";
import type { ClientAddress } from "./client-address.ts";
import { isOfForeignSite } from "./foreign-site.ts";
import { readForm, readJson } from "./body.ts";
import { setRateLimitHeaders } from "./limit-headers.ts";
import type { LoadShedding } from "./load-shedding.ts";
import { Problem, problems } from "./problem.ts";
import type { RateLimit } from "./rate-limit.ts";
import { ROUTES, type Route } from "./routes.ts";
import { requestId, traceparent } from "./trace.ts";

export interface AdmissionDeps {
  readonly authentication: Authentication;
  /** Host names (without ports, lower case) under which the service may be asked. */
  readonly hosts: ReadonlySet<string>;
  /** Whose request it is. */
  readonly clientAddress: ClientAddress;
  /** Whether only this machine can reach the service. */
  readonly isLocal: boolean;
  /** Requests without a token, for each address. */
  readonly anonymousLimit: RateLimit;
  /** Failed authentications, for each address. */
  readonly failureLimit: RateLimit;
  readonly load: LoadShedding;
  readonly makeId: MakeId;
}

/** What an `Authorization` header reads, in place of anything but a bearer token. */
const NO_TOKEN = "none";

/**
 * What every request passes before its handler: an id and a trace, host, path and method, then the caller, then the
 * body. The caller comes before the body, so that a stranger learns nothing of its schema. Hands `cause` on: who and
 * what causes the events of this request.
 */
export function admission(deps: AdmissionDeps) {
  const checkHost = createHostCheck(deps.hosts);
  return new Elysia({ name: "admission" })
    .onRequest(({ request, set, server }) => {
      set.headers["x-request-id"] = requestId(request.headers.get("x-request-id"), deps.makeId);
      set.headers["traceparent"] = traceparent(request.headers.get("traceparent"));
      set.headers["x-content-type-options"] = "nosniff";
      checkHost(request);
      const route = routeOf(request);
      if (route.always !== true) deps.load.admit(server?.pendingRequests ?? 0);
      canonicalize(request.headers);
    })
    .onParse({ as: "global" }, ({ request }) => deps.load.whileComing(() => readBody(request)))
    .use(bearer({ extract: { header: "Bearer", query: "", body: "" } }))
    .derive({ as: "global" }, ({ bearer: token, request, server, set, body }): { metadata: EventMetadata } => {
      const addressOf = (): string => deps.clientAddress(request, server);
      const header = request.headers.get("authorization");
      // The header alone counts: where it holds no token, the plugin goes on to look for one in the query.
      const caller =
        header === null
          ? anonymous(deps, request, addressOf, set.headers)
          : authenticated(deps, header === NO_TOKEN ? undefined : token, addressOf);
      if (body instanceof Problem) throw body;
      return {
        metadata: {
          caller,
          request_id: String(set.headers["x-request-id"]),
          traceparent: String(set.headers["traceparent"]),
        },
      };
    });
}

/** The body; a problem with it is a value here, to be told only once the caller is known. */
async function readBody(request: Request): Promise<unknown> {
  try {
    return ROUTES.get(pathOf(request.url))?.form ? await readForm(request) : await readJson(request);
  } catch (fault) {
    if (fault instanceof Problem) return fault;
    throw fault;
  }
}

/** Nearly all requests name the same host: the last good one needs no second look. */
function createHostCheck(hosts: ReadonlySet<string>): (request: Request) => void {
  let good: string | undefined;
  return ({ headers }) => {
    const given = headers.get("host") ?? "";
    if (given === good) return;
    if (!hosts.has(given.toLowerCase().replace(/:\d+$/, ""))) throw problems.misdirected();
    good = given;
  };
}

/** Throws the problem 404 or 405. */
function routeOf(request: Request): Route {
  const route = ROUTES.get(pathOf(request.url));
  if (route === undefined) throw problems.notFound();
  const { method } = request;
  if (method === route.method || (method === "HEAD" && route.method === "GET")) return route;
  throw problems.methodNotAllowed(route.method === "GET" ? "GET, HEAD" : route.method);
}

/** The path as it was sent: from the first slash behind the host to the query. */
export function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return query === -1 ? url.slice(start) : url.slice(start, query);
}

function canonicalize(headers: Headers): void {
  const given = headers.get("authorization");
  if (given !== null) headers.set("authorization", canonicalBearer(given) ?? NO_TOKEN);
}

/** Whoever comes without a token. Throws 401 where one is wanted, 403 for a page of another site, and 429. */
function anonymous(
  { authentication, hosts, isLocal, anonymousLimit }: AdmissionDeps,
  request: Request,
  addressOf: () => string,
  headers: Parameters<typeof setRateLimitHeaders>[0],
): string {
  const path = pathOf(request.url);
  if (authentication.guards(path)) throw problems.unauthorized();
  if (request.method === "POST" && isOfForeignSite(request, hosts)) throw problems.foreignSite();
  // The address costs a call into the socket: not asked for where all callers are on this machine.
  if (isLocal) return ANONYMOUS;
  const address = addressOf();
  if (isLoopback(address)) return ANONYMOUS;
  const wait = anonymousLimit.take(address);
  setRateLimitHeaders(headers, "anonymous", anonymousLimit.allowance(address));
  if (wait !== undefined) throw problems.tooMany(wait);
  return ANONYMOUS;
}

/**
 * The name of the caller with this token, whatever others failed with from the same address. Throws 401 for a wrong one on
 * any path, and 429 after too many of them.
 */
function authenticated(
  { authentication, failureLimit }: AdmissionDeps,
  token: string | undefined,
  addressOf: () => string,
): string {
  const name = token === undefined ? undefined : authentication.identify(token)?.name;
  if (name !== undefined) return name;
  const address = addressOf();
  const wait = failureLimit.check(address);
  if (wait !== undefined) throw problems.tooMany(wait);
  failureLimit.take(address);
  throw problems.unauthorized();
}
