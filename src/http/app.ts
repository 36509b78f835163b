import { Elysia, ValidationError } from "elysia";
import type { Cause } from "../journal.ts";
import { faultFields, type Logger } from "../log.ts";
import { admission, pathOf, type AdmissionDeps } from "./admission.ts";
import { createApi, type ApiDeps } from "./api.ts";
import { createAuthorization, type AuthorizationDeps } from "./authorization.ts";
import { createConsole, type ConsoleDeps } from "./console.ts";
import type { Idempotency } from "./idempotency.ts";
import { problemOf, problemResponse, problems, type Problem } from "./problem.ts";
import { emptyBody, messagingBody, notifyBody, runBody, signInBody, trackingBody } from "./schemas.ts";
import { createSocial, type SocialDeps } from "./social.ts";

export interface AppDeps {
  readonly admission: AdmissionDeps;
  readonly social: SocialDeps;
  readonly authorization: AuthorizationDeps;
  readonly api: ApiDeps;
  readonly console: ConsoleDeps;
  readonly idempotency: Idempotency;
  readonly log: Logger;
}

/** Every route there is. Protection and methods of each are in routes.ts. */
export function createApp(deps: AppDeps) {
  const social = createSocial(deps.social);
  const authorization = createAuthorization(deps.authorization);
  const api = createApi(deps.api);
  const console = createConsole(deps.console);

  const once = (
    { request, body, cause }: { request: Request; body: unknown; cause: Cause },
    perform: (key: string | undefined) => Promise<Response>,
  ): Promise<Response> => {
    const header = request.headers.get("idempotency-key");
    return deps.idempotency.once({ header, route: pathOf(request.url), body, cause }, perform);
  };

  return (
    new Elysia({ normalize: false, strictPath: true, handler: { standardHostname: false } })
      // First: hooks cover only what comes after them.
      .onError(({ error, request, set }) => answerFault(deps.log, error, request, String(set.headers["x-request-id"])))
      .use(admission(deps.admission))

      .get("/social/health", () => social.health())
      .get("/social/auth", () => authorization.auth())
      .get("/social/callback", ({ request, cause }) => authorization.callback(request, cause))
      .get("/social/me", () => authorization.me())
      .post(
        "/social/run",
        async (context) => {
          const { request, body, cause, set, server } = context;
          // The caller may wait for the whole run.
          server?.timeout(request, 0);
          Object.assign(set.headers, social.quotaHeaders());
          const answer = await once(context, (key) => social.run(body, request.headers.get("prefer"), cause, key));
          Object.assign(set.headers, social.quotaHeaders());
          return answer;
        },
        { body: runBody },
      )
      .get("/social/stats", () => social.stats())

      .get("/api/health", () => api.health())
      .post("/api/notify", (context) => once(context, (key) => api.notify(context.body, context.cause, key)), {
        body: notifyBody,
      })
      .post("/api/tracking/event", (context) => once(context, (key) => api.track(context.body, context.cause, key)), {
        body: trackingBody,
      })
      .post("/api/tracking/test", (context) => once(context, (key) => api.test(context.cause, key)), {
        body: emptyBody,
      })
      .post("/api/messaging", (context) => once(context, (key) => api.message(context.body, context.cause, key)), {
        body: messagingBody,
      })

      .get("/", ({ request }) => console.page(request))
      .post(
        "/session",
        ({ body, request, server }) => console.signIn(body.token, server?.requestIP(request)?.address ?? ""),
        { body: signInBody },
      )
  );
}

export type App = ReturnType<typeof createApp>;

function answerFault(log: Logger, fault: unknown, request: Request, instance: string): Response {
  const problem = fault instanceof ValidationError ? validationProblem(fault) : problemOf(fault);
  if (problem !== undefined) return problemResponse(problem, instance);
  log.error("a request failed", { request_id: instance, path: pathOf(request.url), ...faultFields(fault) });
  return problemResponse(problems.internal(), instance);
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
