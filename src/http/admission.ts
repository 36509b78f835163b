import { bearer } from "@elysiajs/bearer";
import { Elysia } from "elysia";
import type { MakeId } from "../clock.ts";
import { isLoopback } from "../config/urls.ts";
import type { Cause } from "../journal.ts";
import { ANONYMOUS, canonicalBearer, type Authentication } from "./auth.ts";
import { readForm, readJson } from "./body.ts";
import { Problem, problems } from "./problem.ts";
import type { RateLimit } from "./rate-limit.ts";
import { ROUTES } from "./routes.ts";
import { requestId, traceparent } from "./trace.ts";

export interface AdmissionDeps {
  readonly authentication: Authentication;
  /** Host names (without ports, lower case) under which the service may be asked. */
  readonly hosts: ReadonlySet<string>;
  /** Requests without a token, for each address. */
  readonly anonymousLimit: RateLimit;
  /** Failed authentications, for each address. */
  readonly failureLimit: RateLimit;
  readonly makeId: MakeId;
}

/**
 * What every request passes before its handler: an id and a trace, host, path and method, then the caller, then the
 * body. The caller comes before the body, so that a stranger learns nothing of its schema. Hands `cause` on: who and
 * what causes the events of this request.
 */
export function admission(deps: AdmissionDeps) {
  return (
    new Elysia({ name: "admission" })
      .onRequest(({ request, set }) => {
        set.headers["x-request-id"] = requestId(request.headers.get("x-request-id"), deps.makeId);
        set.headers["traceparent"] = traceparent(request.headers.get("traceparent"));
        set.headers["x-content-type-options"] = "nosniff";
        checkHost(request, deps.hosts);
        checkRoute(request);
        canonicalize(request.headers);
      })
      .onParse({ as: "global" }, ({ request }) =>
        // Told only once the caller is known.
        (ROUTES.get(pathOf(request.url))?.form ? readForm(request) : readJson(request)).catch((fault: unknown) =>
          fault instanceof Problem ? fault : Promise.reject(fault),
        ),
      )
      // The header alone counts: with an empty name the plugin finds no token in a query.
      .use(bearer({ extract: { header: "Bearer", query: "", body: "" } }))
      .derive({ as: "global" }, ({ bearer: token, request, server, path, set, body }): { cause: Cause } => {
        const header = request.headers.get("authorization");
        const address = server?.requestIP(request)?.address ?? "127.0.0.1";
        const caller = identify(deps, header === null ? undefined : token, header, path, address);
        if (body instanceof Problem) throw body;
        return {
          cause: {
            caller,
            request_id: String(set.headers["x-request-id"]),
            traceparent: String(set.headers["traceparent"]),
          },
        };
      })
  );
}

function checkHost(request: Request, hosts: ReadonlySet<string>): void {
  const host = request.headers.get("host")?.toLowerCase() ?? "";
  if (!hosts.has(host.replace(/:\d+$/, ""))) throw problems.misdirected();
}

function checkRoute(request: Request): void {
  const route = ROUTES.get(pathOf(request.url));
  if (route === undefined) throw problems.notFound();
  const { method } = request;
  if (method === route.method || (method === "HEAD" && route.method === "GET")) return;
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
  if (given !== null) headers.set("authorization", canonicalBearer(given) ?? "none");
}

/** The caller's name. Throws 401 for a missing token where one is wanted, and for a wrong one anywhere. */
function identify(
  deps: AdmissionDeps,
  token: string | undefined,
  header: string | null,
  path: string,
  address: string,
): string {
  const { authentication } = deps;
  if (header === null) {
    if (authentication.guards(path)) throw problems.unauthorized();
    const wait = isLoopback(address) ? undefined : deps.anonymousLimit.take(address);
    if (wait !== undefined) throw problems.tooMany(wait);
    return ANONYMOUS;
  }
  const blocked = deps.failureLimit.check(address);
  if (blocked !== undefined) throw problems.tooMany(blocked);
  const name = token === undefined ? undefined : authentication.identify(token);
  if (name !== undefined) return name;
  deps.failureLimit.take(address);
  throw problems.unauthorized();
}
