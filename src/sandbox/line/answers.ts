import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

type Detail = { readonly message: string; readonly property: string };

/** https://developers.line.biz/en/reference/messaging-api/#error-responses */
export function failed(status: number, message: string, details?: readonly Detail[]): Response {
  return HttpResponse.json({ message, ...(details === undefined ? {} : { details }) }, { status });
}

export function unauthorized(): Response {
  const reason = "invalid token. Confirm that the access token in the authorization header is valid.";
  return failed(401, `Authentication failed due to the following reason: ${reason}`);
}

export function tooMany(): Response {
  return failed(429, "The API rate limit has been exceeded. Try again later.");
}

export function monthlyLimit(): Response {
  return failed(429, "You have reached your monthly limit.");
}

/** What LINE answers when a fault is switched on. It gives no Retry-After by itself. */
export function lineRefusal({ kind, retryAfter }: Pick<Fault, "retryAfter"> & { readonly kind: string }): Response {
  switch (kind) {
    case "429": {
      const throttled = tooMany();
      if (retryAfter !== undefined) throttled.headers.set("retry-after", String(retryAfter));
      return throttled;
    }
    case "502_html":
      return badGateway();
    case "token_revoked":
      return unauthorized();
    case "monthly_limit":
      return monthlyLimit();
    default:
      return failed(500, "Internal Server Error");
  }
}
