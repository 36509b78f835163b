import { Elysia } from "elysia";
import { randomFillSync } from "node:crypto";
import type { Metrics } from "../metrics/metrics.ts";
import type { RequestSpan, Tracing } from "../tracing/tracing.ts";
import { makeId } from "../platform/clock.ts";
import { errorFields, requestFields, type Logger } from "../platform/logger.ts";
import { createAdmission, type AdmissionDeps } from "./access/admission.ts";
import { JSON_HEADERS, type Answer } from "./server/answer.ts";
import { ANONYMOUS } from "./access/authentication.ts";
import type { ClientAddress } from "./access/client-address.ts";
import { type Asked, type Endpoint, parametersOf, pathOf, segmentsOf } from "./server/endpoint.ts";
import { ENDPOINTS, type EndpointDeps } from "./endpoints.ts";
import type { Idempotency } from "./server/idempotency.ts";
import { createDocument, documentDeps, type DocumentDeps } from "./server/openapi.ts";
import { problemAnswer, problemOf, problems, problemPage, wantsPage } from "./server/problem.ts";
import { setRateLimitHeaders } from "./access/rate-limit.ts";
import type { Server } from "./server/server.ts";

export interface AppDeps extends AdmissionDeps, Omit<EndpointDeps, keyof DocumentDeps> {
  readonly clientAddress: ClientAddress;
  readonly metrics: Pick<Metrics, "text" | "countAnswer">;
  /** Undefined: nobody collects traces. */
  readonly tracing: Pick<Tracing, "request"> | undefined;
  readonly idempotency: Idempotency;
  readonly logger: Logger;
}

export type App = ReturnType<typeof createApp>;

/**
 * The table of endpoints as an app. Elysia finds the endpoint; `respond` is all that happens to a request from there, in
 * its order. There are no hooks: each would cost every request something.
 */
export function createApp(deps: AppDeps) {
  const { authentication, version, sessions } = deps;
  const documents = documentDeps(() => createDocument(ENDPOINTS, version, authentication, sessions.cookie));
  const app = new Elysia({ strictPath: true, handler: { standardHostname: false } });
  const { respond, refuse } = createResponder({ ...deps, ...documents }, () => app.server);
  // Elysia's own refusal is that of a path that is not there: all others are answers of `respond`.
  app.onError(({ request, code, error }) =>
    code === "NOT_FOUND" ? respond(undefined, request) : refuse(error, request),
  );
  for (const endpoint of ENDPOINTS) {
    // Elysia reads a handler's source, and prepares for each request what is named there.
    app.route(endpoint.method, endpoint.path, ({ request }) => respond(endpoint, request));
  }
  return app;
}

type ResponderDeps = AppDeps & EndpointDeps;

/** Null where the app is asked without a socket. */
type ServerOf = () => Server | null;

function createResponder(deps: ResponderDeps, serverOf: ServerOf) {
  const { load, clientAddress, logger, metrics, tracing } = deps;
  const admission = createAdmission(deps);

  /** From here on what the request causes stands below its own span. */
  const follow = (answering: Answering, request: Request, caller: string): void => {
    const span = tracing === undefined ? undefined : spanOf(tracing, answering.endpoint, request, caller);
    if (span === undefined) return;
    answering.span = span;
    answering.headers.traceparent = span.traceparent;
  };

  const finish = (answer: Answer, { endpoint, headers, span }: Answering): Response => {
    metrics.countAnswer(endpoint, answer.status);
    span?.end(answer.status);
    return responseOf(answer, headers);
  };

  const refuse = (
    fault: unknown,
    request: Request,
    answering: Answering = { endpoint: undefined, headers: headersOf(request) },
  ): Response => {
    const { headers } = answering;
    // Turned away before it was known who asks.
    if (answering.span === undefined) follow(answering, request, ANONYMOUS);
    const instance = headers["x-request-id"];
    const problem = problemOf(fault, request.method === "GET");
    if (problem === undefined) {
      const about = requestFields({ request_id: instance, traceparent: headers.traceparent });
      logger.error("a request failed", { ...about, path: templateOf(request), ...errorFields(fault) });
    }
    const answerOf = wantsPage(request) ? problemPage : problemAnswer;
    return finish(answerOf(problem ?? problems.internal(), instance), answering);
  };

  /** The caller comes before the body, so that a stranger learns nothing of its schema. */
  const respond = async (endpoint: Endpoint<EndpointDeps> | undefined, request: Request): Promise<Response> => {
    const headers = headersOf(request);
    const answering: Answering = { endpoint, headers };
    try {
      admission.checkHost(endpoint, request);
      if (endpoint === undefined) throw notServed(request);
      const server = serverOf();
      const addressOf = (): string => clientAddress(request, server);
      const admitted = admission.admit(endpoint, request, addressOf, server?.pendingRequests ?? 0, headers);
      // Nearly all are known at once: an await would cost each of them a turn of the event loop.
      const caller = typeof admitted === "string" ? admitted : await admitted;
      follow(answering, request, caller);
      const metadata = { caller, request_id: headers["x-request-id"], traceparent: headers.traceparent };
      const { operation } = endpoint;
      const reading = operation.body?.read(request);
      // The body is what the handler takes: the type of both is that of one schema.
      const body = (reading && (await load.whileComing(reading))) as never;
      if (operation.isSlow === true) server?.timeout(request, 0);
      const parameters = parametersIn(endpoint, request);
      const asked = { request, parameters, body, metadata, key: undefined, addressOf };
      showLimit(deps, operation, headers);
      const answer = await perform(deps, operation, asked);
      showLimit(deps, operation, headers);
      return finish(answer, answering);
    } catch (fault) {
      return refuse(fault, request, answering);
    }
  };
  return { respond, refuse };
}

/** A request on its way to its answer. */
interface Answering {
  readonly endpoint: Endpoint<EndpointDeps> | undefined;
  readonly headers: ReturnType<typeof headersOf>;
  /** From the time on when it is known who asks. */
  span?: RequestSpan | undefined;
}

/** A span for each request of our endpoints, but for what supervisors ask every few seconds. */
function spanOf(
  tracing: Pick<Tracing, "request">,
  endpoint: Endpoint<EndpointDeps> | undefined,
  { headers }: Request,
  caller: string,
): RequestSpan | undefined {
  if (endpoint === undefined || endpoint.always === true) return undefined;
  const isKnown = caller !== ANONYMOUS;
  return tracing.request(`${endpoint.method} ${endpoint.path}`, headers.get("traceparent"), isKnown);
}

const NO_PARAMETERS = {};

/** Throws the problem 404 for what encodes no text. */
function parametersIn({ path, operation }: Endpoint<EndpointDeps>, { url }: Request): Asked<never>["parameters"] {
  if (operation.parameters === undefined) return NO_PARAMETERS;
  const parameters = parametersOf(path, pathOf(url));
  if (parameters === undefined) throw problems.notFound();
  return parameters;
}

/** Calls the handler, or gives the answer that it gave before. */
function perform(
  deps: ResponderDeps,
  { takes, handle, isOver, isExclusive }: Endpoint<EndpointDeps>["operation"],
  asked: Asked<never>,
): Answer | Promise<Answer> {
  const header = asked.request.headers.get("idempotency-key");
  // Only a key is worth the way through the log of answers.
  if (header === null || takes?.includes("Idempotency-Key") !== true) return handle(deps, asked);
  return deps.idempotency.once(
    { header, route: pathOf(asked.request.url), body: asked.body, metadata: asked.metadata },
    async (key) => handle(deps, { ...asked, key }),
    { isExclusive, isOver: isOver && ((kept) => isOver(deps, kept)) },
  );
}

/** Shows the operation's limit as it is now. */
function showLimit(
  deps: ResponderDeps,
  { limit }: Endpoint<EndpointDeps>["operation"],
  headers: Record<string, string>,
): void {
  if (limit !== undefined) setRateLimitHeaders(headers, limit.name, limit.allowance(deps));
}

/** The headers that every answer has, and of each request alone. */
function headersOf({ headers }: Request) {
  return {
    "x-request-id": requestId(headers.get("x-request-id"), makeId),
    traceparent: traceparent(headers.get("traceparent")),
  };
}

/** A browser takes what is sent for what its type says. */
const UNSNIFFED = { "x-content-type-options": "nosniff" };

/** Of nearly all answers. Copying it costs half of what making another one does. */
const HEADERS_OF_JSON = new Headers({ ...UNSNIFFED, ...JSON_HEADERS });

function responseOf({ status, headers, body, stream }: Answer, own: Readonly<Record<string, string>>): Response {
  const shared = headers === JSON_HEADERS ? HEADERS_OF_JSON : { ...UNSNIFFED, ...headers };
  const response = new Response(stream ?? body, { status, headers: shared });
  for (const name in own) response.headers.set(name, own[name]!);
  return response;
}

/** The path of the endpoint: what was sent may name a person. */
function templateOf({ url }: Request): string {
  const path = pathOf(url);
  return ENDPOINTS.find((endpoint) => segmentsOf(endpoint.path, path) !== undefined)?.path ?? "unknown";
}

/** The problem 404, or 405 with the methods that the path has. */
function notServed({ url }: Request) {
  const path = pathOf(url);
  const methods = ENDPOINTS.filter((endpoint) => segmentsOf(endpoint.path, path) !== undefined).map(
    ({ method }) => method,
  );
  if (methods.length === 0) return problems.notFound();
  return problems.methodNotAllowed(methods.map((method) => (method === "GET" ? "GET, HEAD" : method)).join(", "));
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** W3C Trace Context, version 00: trace id and parent id must not be all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's request id where it is one, else a fresh one. */
export function requestId(given: string | null, make: () => string): string {
  return given !== null && REQUEST_ID.test(given) ? given : make();
}

/** The caller's `traceparent` where it is one, else the start of a trace of its own (not sampled). */
export function traceparent(given: string | null): string {
  if (given !== null && TRACEPARENT.test(given)) return given;
  const random = randomHex();
  return `00-${random.slice(0, 32)}-${random.slice(32)}-00`;
}

/** A trace id and a parent id. */
const ID_BYTES = 16 + 8;

/** Asking the system for randomness costs a microsecond, however little is asked for. */
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
