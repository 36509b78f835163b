import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";
import { notPermitted, tooManyRequests, unauthorized, xProblem } from "./answers.ts";

/** What X answers when a fault is switched on. `now` in ms since the epoch. */
export function xRefusal({ kind, retryAfter }: Fault, now: number): Response {
  switch (kind) {
    case "429":
      return retryAfter === undefined ? tooManyRequests() : limitedUntil(now + retryAfter * 1000);
    case "502_html":
      return badGateway();
    case "token_revoked":
      return unauthorized();
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
        { period: "Monthly", scope: "Product" },
      );
    case "sender_restricted":
      return notPermitted();
    case "client_forbidden":
      return xProblem(
        403,
        "Client Forbidden",
        "When authenticating requests to the Twitter API v2 endpoints, you must use keys and tokens from a Twitter developer App that is attached to a Project. You can create a project via the developer portal.",
        "https://api.twitter.com/2/problems/client-forbidden",
        { reason: "client-not-enrolled", required_enrollment: "Appropriate Level of API Access" },
      );
    case "over_capacity":
      return xProblem(503, "Service Unavailable", "Service Unavailable");
    default:
      return xProblem(500, "Internal Server Error", "Something is broken. This is usually a temporary error.");
  }
}

/** X tells the moment, not the wait. */
function limitedUntil(time: number): Response {
  const answer = tooManyRequests();
  answer.headers.set("x-rate-limit-limit", "15");
  answer.headers.set("x-rate-limit-remaining", "0");
  answer.headers.set("x-rate-limit-reset", String(Math.ceil(time / 1000)));
  return answer;
}
