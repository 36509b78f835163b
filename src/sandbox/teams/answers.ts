import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** An error of the service that runs workflows. */
export function failed(status: number, code: string, message: string): Response {
  return HttpResponse.json({ error: { code, message } }, { status });
}

/** Accepted: what the workflow makes of it shows in its run history only. */
export function accepted(run: string): Response {
  return new Response(null, { status: 202, headers: { "x-ms-workflow-run-id": run } });
}

export function wrongSignature(): Response {
  return failed(401, "DirectApiAuthorizationRequired", "The request must be authenticated by a valid signature.");
}

export function noWorkflow(): Response {
  return failed(404, "WorkflowNotFound", "The workflow could not be found.");
}

export function wrongSchema(why: string): Response {
  return failed(
    400,
    "TriggerInputSchemaMismatch",
    `The input body for trigger 'manual' did not match its schema: ${why}`,
  );
}

export function rateLimited(retryAfterS: number | undefined): Response {
  const throttled = failed(429, "WorkflowTriggerRequestsThrottled", "The number of requests is over the limit.");
  if (retryAfterS !== undefined) throttled.headers.set("retry-after", String(retryAfterS));
  return throttled;
}

/** What a workflow's address answers when a fault is switched on. */
export function teamsRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429":
      return rateLimited(retryAfter);
    case "502_html":
      return badGateway();
    case "token_revoked":
      return wrongSignature();
    case "workflow_deleted":
      return noWorkflow();
    case "workflow_off":
      return failed(
        400,
        "WorkflowTriggerIsNotEnabled",
        "Could not execute workflow trigger 'manual': it is 'Disabled'.",
      );
    default:
      return failed(500, "InternalServerError", "Encountered internal server error.");
  }
}
