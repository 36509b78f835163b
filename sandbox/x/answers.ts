import { HttpResponse } from "msw";
import type { Refusals } from "../network.ts";

type Json = Readonly<Record<string, unknown>>;

/** An error of X API v2: a problem with X's type URLs. */
export function xProblem(status: number, title: string, detail: string, type = "about:blank", more: Json = {}) {
  return HttpResponse.json(
    { title, detail, type, status, ...more },
    { status, headers: { "content-type": "application/problem+json" } },
  );
}

export const unauthorized = () => xProblem(401, "Unauthorized", "Unauthorized");

/** X's answer if the token lacks a scope. */
export const forbiddenScope = () => xProblem(403, "Forbidden", "Forbidden");

/** X's answer about one person or about the whole account; its text does not tell which. */
export const notPermitted = () => xProblem(403, "Forbidden", "This operation is not permitted.");

export const notFound = () => xProblem(404, "Not Found", "Not Found");

export const tooManyRequests = () => xProblem(429, "Too Many Requests", "Too Many Requests");

export function invalidRequest(message: string, parameters: Json = {}) {
  return HttpResponse.json(
    {
      errors: [{ parameters, message }],
      title: "Invalid Request",
      detail: "One or more parameters to your request was invalid.",
      type: "https://api.x.com/2/problems/invalid-request",
    },
    { status: 400, headers: { "content-type": "application/problem+json" } },
  );
}

/** Refuses an id in the path that X cannot have issued; undefined if it is valid. */
export function refuseId(name: "id" | "participant_id", id: string): Response | undefined {
  if (/^\d{1,19}$/.test(id)) return undefined;
  return invalidRequest(`The \`${name}\` path parameter value does not match ^[0-9]{1,19}$`);
}

/** Refuses one query parameter, worded as X does. */
export function invalidParameter(name: string, value: string, why: string) {
  return invalidRequest(`The \`${name}\` query parameter value [${value}] ${why}`, { [name]: [value] });
}

/** An entry of `errors` in an otherwise successful answer. */
export function resourceNotFound(parameter: string, value: string, resource_type: "user" | "list") {
  return {
    value,
    detail: `Could not find ${resource_type} with ${parameter}: [${value}].`,
    title: "Not Found Error",
    resource_type,
    parameter,
    resource_id: value,
    // Some of X's answers still use the old domain.
    type: "https://api.twitter.com/2/problems/resource-not-found",
  };
}

/** An error of X's token endpoint (RFC 6749, with X's texts). */
export function oauthError(status: number, error: string, description: string) {
  return HttpResponse.json({ error, error_description: description }, { status });
}

/** X gives the time of the reset, not the wait. */
function limitedUntil(time: number): Response {
  const answer = tooManyRequests();
  answer.headers.set("x-rate-limit-limit", "15");
  answer.headers.set("x-rate-limit-remaining", "0");
  answer.headers.set("x-rate-limit-reset", String(Math.ceil(time / 1000)));
  return answer;
}

const TYPES = "https://api.twitter.com/2/problems";

export const xRefusals = {
  "429": ({ retryAfter, now }) =>
    retryAfter === undefined ? tooManyRequests() : limitedUntil(now + retryAfter * 1000),
  "500": () => xProblem(500, "Internal Server Error", "Something is broken. This is usually a temporary error."),
  token_revoked: unauthorized,
  credits_depleted: () =>
    xProblem(
      402,
      "CreditsDepleted",
      "Your enrolled account [1] does not have any credits to fulfill this request.",
      `${TYPES}/credits`,
    ),
  usage_capped: () =>
    xProblem(429, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap", `${TYPES}/usage-capped`, {
      period: "Monthly",
      scope: "Product",
    }),
  sender_restricted: notPermitted,
  client_forbidden: () =>
    xProblem(
      403,
      "Client Forbidden",
      "When authenticating requests to the Twitter API v2 endpoints, you must use keys and tokens from a Twitter developer App that is attached to a Project. You can create a project via the developer portal.",
      `${TYPES}/client-forbidden`,
      { reason: "client-not-enrolled", required_enrollment: "Appropriate Level of API Access" },
    ),
  over_capacity: () => xProblem(503, "Service Unavailable", "Service Unavailable"),
} satisfies Refusals;
