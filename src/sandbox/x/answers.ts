import { HttpResponse } from "msw";

type Json = Readonly<Record<string, unknown>>;

/** An error of X API v2: a problem with X's own type URLs. */
export function xProblem(status: number, title: string, detail: string, type = "about:blank", more: Json = {}) {
  return HttpResponse.json(
    { title, detail, type, status, ...more },
    { status, headers: { "content-type": "application/problem+json" } },
  );
}

export const unauthorized = () => xProblem(401, "Unauthorized", "Unauthorized");

/** What X answers when the token lacks a scope. */
export const forbiddenScope = () => xProblem(403, "Forbidden", "Forbidden");

/** For one person or for the whole account: the words do not tell. */
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

/** The refusal of one query parameter, worded as X does. */
export function invalidParameter(name: string, value: string, why: string) {
  return invalidRequest(`The \`${name}\` query parameter value [${value}] ${why}`, { [name]: [value] });
}

/** An entry of `errors` in an otherwise good answer. */
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

/** An error of X's token endpoint (RFC 6749, with X's own words). */
export function oauthError(status: number, error: string, description: string) {
  return HttpResponse.json({ error, error_description: description }, { status });
}
