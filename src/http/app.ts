import { randomFillSync } from "node:crypto";
import { Elysia } from "elysia";
import { makeId } from "../platform/clock-ids-and-timers.ts";
import { errorFields, requestFields } from "../platform/logger.ts";
import { createAdmission } from "./access/check-host-load-and-caller.ts";
import { createReadHook } from "./access/audit-reads.ts";
import { ANONYMOUS } from "./access/bearer-tokens.ts";
import { setRateLimitHeaders } from "./access/rate-limit.ts";
import { NO_CALL, type HttpContext } from "./http-context.ts";
import { features } from "./endpoints.ts";
import { documentEndpoints } from "./features/api-reference.ts";
import { JSON_HEADERS, toHttpResponse, type HttpResponse } from "./server/http-response.ts";
import { listEndpoints, type Endpoint, type RequestContext } from "./server/endpoint.ts";
import { addForms } from "./server/form-routes.ts";
import { type Problem, problemAnswer, toProblem, problemPage, problems, wantsPage } from "./server/problem.ts";

/** The service's Elysia app. `treaty<App>(url)` of `@elysiajs/eden` makes a typed client from this type. */
export type App = ReturnType<typeof createApp>;

/**
 * Creates the app: all features, with hooks that admit a request, read its body, and make the response or refusal.
 * Elysia parses nothing (`parse: "none"`), so no body is read before the caller is admitted.
 */
export function createApp(deps: HttpContext) {
  const { load, clientAddress, metrics, tracing, sessions } = deps;
  // Measured: this app's Elysia hooks (`admission` and others) take 1 to 2 µs of the 24 µs that a click takes. So the
  // service records 2 to 8 % fewer clicks a second than without hooks.
  const admission = createAdmission(deps);
  const refuse = createRefusal(deps);
  const byRoute = new Map<string, Partial<Record<string, Endpoint>>>();
  /**
   * Original requests by their copy with a normalized path. The server knows the caller's address only for the
   * original.
   */
  const cameAs = new WeakMap<Request, Request>();
  const app = new Elysia({ strictPath: true, normalize: false, handler: { standardHostname: false } }).decorate(
    NO_CALL,
  );

  /**
   * Admits a request: checks the host first, and the caller before the body, so that unauthenticated callers learn
   * nothing about the body's schema.
   */
  app.onTransform(async (context) => {
    const { request, route } = context;
    const { server } = app;
    const endpoint = byRoute.get(route)![request.method === "HEAD" ? "GET" : request.method]!;
    const headers = ownHeaders(request);
    const arrived = cameAs.get(request) ?? request;
    const readAddress = (): string => clientAddress(arrived, server);
    const call = { request, endpoint, headers, readAddress, metadata: {} } as InFlightRequest;
    context.call = call;
    admission.checkHost(endpoint, request);
    const looked = sessions.look(request);
    if (looked !== undefined) await looked;
    const admitted = admission.admit(call, server?.pendingRequests ?? 0);
    // Nearly all callers are known without waiting. An await would cost each of them a turn of the event loop.
    const { name: caller, links } = admitted instanceof Promise ? await admitted : admitted;
    follow(tracing, call, caller);
    call.links = links;
    call.metadata = { caller, request_id: headers["x-request-id"], traceparent: headers.traceparent };
    const { body, isSlow, parameters } = endpoint;
    // Elysia's own hook for parsers is not used, because before calling it Elysia reads `request.body`, which turns
    // each body into a stream.
    if (body !== undefined) context.body = await load.whileComing(body.read(request));
    if (isSlow === true) server?.timeout(arrived, 0);
    if (parameters !== undefined && !isText(context.path)) throw problems.notFound();
    showLimit(call);
  });

  if (deps.config.auditReads) {
    const recordRead = createReadHook(deps);
    app.onAfterHandle(({ call, responseValue }) => recordRead(call, responseValue));
  }

  app.mapResponse(({ call, set, responseValue }) => {
    // A refusal is a complete response already.
    if (responseValue instanceof Response) return undefined;
    showLimit(call);
    const answer = toHttpResponse(responseValue, Number(set.status));
    set.status = UNTOUCHED;
    return finish(metrics, answer, call);
  });

  // Elysia itself refuses only unknown paths (NOT_FOUND). All other faults come from the hooks and handlers.
  app.onError(({ request, path, code, error, call, set }) => {
    set.status = UNTOUCHED;
    if (code !== "NOT_FOUND" || call !== undefined) return refuse(error, request, call);
    try {
      admission.checkHost(undefined, request);
      const plain = withPlainPath(request);
      if (plain !== undefined) {
        cameAs.set(plain, request);
        return app.handle(plain);
      }
      throw notServed(
        (method) => byRoute.get(path)?.[method] !== undefined || app.router.http.find(method, path) !== null,
      );
    } catch (fault) {
      return refuse(fault, request, undefined);
    }
  });

  const served = app.use(features(deps)).use(documentEndpoints(() => listEndpoints(app), deps));
  addForms(app, deps);
  for (const endpoint of listEndpoints(app)) {
    byRoute.set(endpoint.path, { ...byRoute.get(endpoint.path), [endpoint.method]: endpoint });
  }
  return served;
}

/**
 * Returns a copy of the request whose path has single slashes and none at its end; undefined if its path is already in
 * that form.
 */
function withPlainPath(request: Request): Request | undefined {
  // A `Host` header that is not a host name makes the URL invalid.
  if (!URL.canParse(request.url)) return undefined;
  const url = new URL(request.url);
  const plain = url.pathname.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  if (plain === url.pathname) return undefined;
  url.pathname = plain;
  return new Request(url, request);
}

/**
 * Value of Elysia's `set.status` for a finished response. With any other value, Elysia would take the response apart to
 * apply the status.
 */
const UNTOUCHED = 200;

/** A request in progress; the hooks fill in its fields one after the other. */
interface InFlightRequest extends RequestContext {
  metadata: RequestContext["metadata"];
  links: RequestContext["links"];
  headers: ReturnType<typeof ownHeaders>;
}

/**
 * Starts the trace span of a request, which becomes the parent of all that the request causes. Endpoints that
 * supervisors poll every few seconds get none.
 */
function follow(tracing: HttpContext["tracing"], call: InFlightRequest, caller: string): void {
  const { endpoint, request, headers } = call;
  if (tracing === undefined || endpoint.exemptFromLoadShedding === true) return;
  const name = `${endpoint.method} ${endpoint.path}`;
  call.span = tracing.request(name, request.headers.get("traceparent"), caller !== ANONYMOUS);
  if (call.span !== undefined) headers.traceparent = call.span.traceparent;
}

function createRefusal({ logger, metrics, tracing }: HttpContext) {
  return (fault: unknown, request: Request, call: RequestContext | undefined): Response => {
    const headers = call?.headers ?? ownHeaders(request);
    // If the request was refused before its caller was known, its span has not started yet.
    if (call !== undefined && call.span === undefined) follow(tracing, call as InFlightRequest, ANONYMOUS);
    const instance = headers["x-request-id"] ?? "";
    const problem = toProblem(fault, request.method === "GET");
    if (problem === undefined) {
      const about = requestFields({ request_id: instance, traceparent: headers["traceparent"] });
      // The log line has the endpoint's path pattern, because the requested path may name a recipient.
      logger.error("a request failed", { ...about, path: call?.endpoint.path ?? "unknown", ...errorFields(fault) });
    }
    const answer = answerProblem(problem ?? problems.internal(), request, instance, call?.endpoint);
    return finish(metrics, answer, { endpoint: call?.endpoint, headers, span: call?.span });
  };
}

function answerProblem(problem: Problem, request: Request, instance: string, endpoint?: Endpoint): HttpResponse {
  if (!wantsPage(request)) return problemAnswer(problem, instance);
  const page = endpoint?.refusalPage?.(problem, request);
  if (page === undefined) return problemPage(problem, instance);
  return { ...page, status: problem.status, headers: { ...page.headers, ...problem.headers } };
}

interface Finished {
  readonly headers: RequestContext["headers"];
  readonly span?: RequestContext["span"];
  readonly endpoint: Endpoint | undefined;
}

function finish(
  metrics: HttpContext["metrics"],
  answer: HttpResponse,
  { endpoint, headers, span }: Finished,
): Response {
  metrics.countAnswer(endpoint, answer.status);
  span?.end(answer.status);
  const { status, body, bytes, stream } = answer;
  const shared = answer.headers === JSON_HEADERS ? HEADERS_OF_JSON : { ...UNSNIFFED, ...answer.headers };
  const response = new Response(stream ?? bytes ?? body, { status, headers: shared });
  for (const name in headers) response.headers.set(name, headers[name]!);
  return response;
}

function showLimit({ endpoint, headers }: RequestContext): void {
  const { limit } = endpoint;
  if (limit !== undefined) setRateLimitHeaders(headers, limit.name, limit.allowance());
}

/**
 * True if the path's percent-encoding decodes to text. Elysia decodes parameters, and would turn invalid encodings into
 * something else.
 */
function isText(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** Returns the problem for a request that no route serves: 404, or 405 with the allowed methods if the path exists. */
function notServed(isServed: (method: string) => boolean) {
  const methods = ["POST", "GET"].filter(isServed);
  if (methods.length === 0) return problems.notFound();
  return problems.methodNotAllowed(methods.map((method) => (method === "GET" ? "GET, HEAD" : method)).join(", "));
}

/** Returns the headers that every answer has: the request's id and trace, as the caller gave them or new ones. */
function ownHeaders({ headers }: Request) {
  return {
    "x-request-id": requestId(headers.get("x-request-id"), makeId),
    traceparent: traceparent(headers.get("traceparent")),
  };
}

/** Header that keeps browsers from guessing another content type than the declared one. */
const UNSNIFFED = { "x-content-type-options": "nosniff" };

/** Default headers of JSON answers. Copying one object costs half of what building the headers does. */
const HEADERS_OF_JSON = new Headers({ ...UNSNIFFED, ...JSON_HEADERS });

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Matches a `traceparent` of W3C Trace Context, version 00: trace id and parent id must not be all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns the caller's request id if it is valid, else a fresh one. */
export function requestId(given: string | null, make: () => string): string {
  return given !== null && REQUEST_ID.test(given) ? given : make();
}

/** Returns the caller's `traceparent` if it is valid, else the start of a new trace (not sampled). */
export function traceparent(given: string | null): string {
  if (given !== null && TRACEPARENT.test(given)) return given;
  const random = randomHex();
  return `00-${random.slice(0, 32)}-${random.slice(32)}-00`;
}

/** Number of random bytes in a new `traceparent`: a trace id and a parent id. */
const ID_BYTES = 16 + 8;

/** Random bytes drawn in advance, because each call for random bytes takes a microsecond, however few are drawn. */
const pool = Buffer.alloc(ID_BYTES * 256);
let used = pool.length;

function randomHex(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += ID_BYTES;
  return pool.toString("hex", used - ID_BYTES, used);
}
