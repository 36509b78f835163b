import { HttpResponse } from "msw";

type Json = Record<string, unknown>;

/** An error of X API v2: a problem with X's own type URLs. */
export function xProblem(status: number, title: string, detail: string, type = "about:blank", more: Json = {}) {
  return HttpResponse.json(
    { title, detail, type, status, ...more },
    { status, headers: { "content-type": "application/problem+json" } },
  );
}

export const unauthorized = () => xProblem(401, "Unauthorized", "Unauthorized");

export const forbiddenScope = () => xProblem(403, "Forbidden", "Forbidden");

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

export const tooManyRequests = (headers: Record<string, string> = {}) =>
  HttpResponse.json(
    { title: "Too Many Requests", detail: "Too Many Requests", type: "about:blank", status: 429 },
    { status: 429, headers },
  );

/** An error of X's token endpoint (RFC 6749, with X's own words). */
export function oauthError(status: number, error: string, description: string) {
  return HttpResponse.json({ error, error_description: description }, { status });
}
