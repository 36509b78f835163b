import { HttpResponse } from "msw";
import { tooManyRequests, unauthorized, xProblem } from "./answers.ts";

/** What X answers when a fault is switched on. */
export function xRefusal(kind: string, retryAfter: number | undefined): Response | undefined {
  switch (kind) {
    case "429":
      return tooManyRequests(
        retryAfter === undefined
          ? {}
          : {
              "x-rate-limit-remaining": "0",
              "x-rate-limit-limit": "15",
              "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + retryAfter),
            },
      );
    case "500":
      return xProblem(500, "Internal Server Error", "Something is broken. This is usually a temporary error.");
    case "credits_depleted":
      return xProblem(
        402,
        "CreditsDepleted",
        "Your enrolled account [1] does not have any credits to fulfill this request.",
        "https://api.twitter.com/2/problems/credits",
      );
    case "usage_capped":
      return xProblem(
        429,
        "UsageCapExceeded",
        "Usage cap exceeded: Monthly product cap",
        "https://api.twitter.com/2/problems/usage-capped",
        {
          period: "Monthly",
          scope: "Product",
        },
      );
    case "sender_restricted":
      return xProblem(403, "Forbidden", "This operation is not permitted.");
    case "token_revoked":
      return unauthorized();
    case "502_html":
      return HttpResponse.html("<html><body><h1>502 Bad Gateway</h1></body></html>", { status: 502 });
    default:
      return undefined;
  }
}
