import { Elysia, ValidationError } from "elysia";
import type { IdempotencyKey } from "eventstore-lite";
import type { EventMetadata } from "../log/event-log.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { admission, pathOf, type AdmissionDeps } from "./admission.ts";
import { createApi, type ApiDeps } from "./api.ts";
import { createAuthorization, type AuthorizationDeps } from "./authorization.ts";
import { createConsole, type ConsoleDeps } from "./console.ts";
import type { Idempotency, IsOver } from "./idempotency.ts";
import { json, send, type Answer, type AnswerTarget } from "./answer.ts";
import { withRateLimitHeaders } from "./limit-headers.ts";
import { createDocument } from "./openapi/document.ts";
import { problemAnswer, problemOf, problems, type Problem } from "./problem.ts";
import { emptyBody, messagingBody, notifyBody, runBody, signInBody, trackingBody } from "./schemas.ts";
import { createSocial, type SocialDeps } from "./social.ts";

export interface AppDeps {
  readonly admission: AdmissionDeps;
  readonly social: SocialDeps;
  readonly authorization: AuthorizationDeps;
  readonly api: ApiDeps;
  readonly console: ConsoleDeps;
  readonly idempotency: Idempotency;
  readonly logger: Logger;
}

/** What of a request decides whether it was answered before. */
interface Keyable {
  readonly request: Request;
  readonly body: unknown;
  readonly metadata: EventMetadata;
  readonly set: AnswerTarget;
}

/**
 * Every route there is. Protection and methods of each are in routes.ts.
 *
 * Handlers name what they take: Elysia reads their source, and prepares cookies, query and headers for each request to a
 * handler that takes the whole context.
 */
export function createApp(deps: AppDeps) {
  const social = createSocial(deps.social);
  const authorization = createAuthorization(deps.authorization);
  const api = createApi(deps.api);
  const console = createConsole(deps.console);
  const document = documentOf(deps);

  const once = createOnce(deps.idempotency);

  return (
    new Elysia({ normalize: false, strictPath: true, handler: { standardHostname: false } })
      // First: hooks cover only what comes after them.
      .onError(({ error, request, set }) => send(set, faultAnswer(deps.logger, error, request, requestIdOf(set))))
      .use(admission(deps.admission))

      .get("/social/health", ({ set }) => send(set, social.health()))
      .get("/social/auth", async ({ set }) => send(set, await authorization.auth()))
      .get("/social/callback", async ({ set, request, metadata, server }) =>
        send(set, await keeping(server, request, authorization.callback(request, metadata))),
      )
      .get("/social/me", async ({ set, request, server }) =>
        send(set, await keeping(server, request, authorization.me())),
      )
      .post(
        "/social/run",
        ({ request, body, metadata, set, server }) => {
          const run = (key: IdempotencyKey | undefined) =>
            social.run(body, request.headers.get("prefer"), metadata, key);
          const answer = () => once({ request, body, metadata, set }, run, social.isOver);
          return keeping(server, request, withRateLimitHeaders(set.headers, "dm-day", social.allowance, answer));
        },
        { body: runBody },
      )
      .get("/social/stats", ({ set }) => send(set, social.stats()))

      .get("/api/health", async ({ set }) => send(set, await api.health()))
      .post(
        "/api/notify",
        ({ request, body, metadata, set }) =>
          once({ request, body, metadata, set }, (key) => api.notify(body, metadata, key)),
        { body: notifyBody },
      )
      .post(
        "/api/tracking/event",
        ({ request, body, metadata, set }) =>
          once({ request, body, metadata, set }, (key) => api.track(body, metadata, key)),
        { body: trackingBody },
      )
      .post(
        "/api/tracking/test",
        ({ request, body, metadata, set }) => once({ request, body, metadata, set }, (key) => api.test(metadata, key)),
        { body: emptyBody },
      )
      .post(
        "/api/messaging",
        ({ request, body, metadata, set }) =>
          once({ request, body, metadata, set }, (key) => api.message(body, metadata, key)),
        { body: messagingBody },
      )

      .get("/openapi.json", ({ set }) => send(set, document))
      .get("/", async ({ set, request }) => send(set, await console.page(request)))
      .post(
        "/session",
        ({ body, request, server, set }) =>
          send(set, console.signIn(body.token, deps.admission.clientAddress(request, server))),
        { body: signInBody },
      )
  );
}

/** As Elysia hands it to a handler; null where the app is asked without a socket. */
type Server = { timeout(request: Request, seconds: number): void } | null;

export type App = ReturnType<typeof createApp>;

function documentOf({ api, admission: { authentication }, console: { sessions } }: AppDeps): Answer {
  return json(200, createDocument(api.version, authentication.guards, sessions.cookie));
}

/** Answers a POST, whose repeats with its `Idempotency-Key` get the same answer. */
function createOnce(idempotency: Idempotency) {
  return (
    { request, body, metadata, set }: Keyable,
    perform: (key: IdempotencyKey | undefined) => Promise<Answer>,
    isOver?: IsOver,
  ): Promise<string> => {
    const header = request.headers.get("idempotency-key");
    // Only a key is worth the way through the log of answers.
    const answer =
      header === null
        ? perform(undefined)
        : idempotency.once({ header, route: pathOf(request.url), body, metadata }, perform, isOver);
    return answer.then((given) => send(set, given));
  };
}

/** Keeps the connection while the answer is waited for: X may take longer for tokens than one may be idle, and so may a run. */
function keeping<T>(server: Server, request: Request, answer: Promise<T>): Promise<T> {
  server?.timeout(request, 0);
  return answer;
}

function requestIdOf({ headers }: AnswerTarget): string {
  return String(headers["x-request-id"]);
}

function faultAnswer(logger: Logger, fault: unknown, request: Request, instance: string): Answer {
  const problem = fault instanceof ValidationError ? validationProblem(fault) : problemOf(fault);
  if (problem !== undefined) return problemAnswer(problem, instance);
  logger.error("a request failed", { request_id: instance, path: pathOf(request.url), ...errorFields(fault) });
  return problemAnswer(problems.internal(), instance);
}

/** Where a body does not fit, and why, without the value: it may be personal or a secret. */
function validationProblem(fault: ValidationError): Problem {
  // An answer of ours that breaks its schema is our fault, not the caller's.
  if (fault.type !== "body") return problems.internal();
  const errors = new Map<string, string>();
  for (const { path, message } of fault.all as { path: string; message: string }[]) {
    if (!errors.has(path)) errors.set(path, message);
  }
  return problems.invalid([...errors].map(([path, message]) => ({ path, message })));
}
