import { HttpResponse } from "msw";
import type { Refusals } from "../network-origins-and-refusals.ts";

type Json = Readonly<Record<string, unknown>>;

/** Answers with an error of X's API v2: a problem whose `type` is an address of X. */
export function xProblem(status: number, title: string, detail: string, type = "about:blank", more: Json = {}) {
  return HttpResponse.json(
    { title, detail, type, status, ...more },
    { status, headers: { "content-type": "application/problem+json" } },
  );
}

export const unauthorized = () => xProblem(401, "Unauthorized", "Unauthorized");

/** Answers as X does if the token lacks a scope. */
export const forbiddenScope = () => xProblem(403, "Forbidden", "Forbidden");

/**
 * Answers as X does if it refuses a message, because of the recipient or of the whole account; the text does not tell
 * which.
 */
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

/** Returns a refusal of an id in the path that X cannot have issued; undefined if the id is valid. */
export function refuseId(name: "id" | "participant_id", id: string): Response | undefined {
  if (/^\d{1,19}$/.test(id)) return undefined;
  return invalidRequest(`The \`${name}\` path parameter value does not match ^[0-9]{1,19}$`);
}

/** Answers with a refusal of one query parameter, in X's words. */
export function invalidParameter(name: string, value: string, why: string) {
  return invalidRequest(`The \`${name}\` query parameter value [${value}] ${why}`, { [name]: [value] });
}

/** Returns an entry for `errors` in an otherwise successful answer: X does not know this user or list. */
export function resourceNotFound(parameter: string, value: string, resource_type: "user" | "list") {
  return {
    value,
    detail: `Could not find ${resource_type} with ${parameter}: [${value}].`,
    title: "Not Found Error",
    resource_type,
    parameter,
    resource_id: value,
    // Some of X's answers still name the old domain.
    type: "https://api.twitter.com/2/problems/resource-not-found",
  };
}

/** Answers with an error of X's token endpoint (RFC 6749, with X's texts). */
export function oauthError(status: number, error: string, description: string) {
  return HttpResponse.json({ error, error_description: description }, { status });
}

/** Answers 429. X states the time when the limit resets, not the wait. */
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
