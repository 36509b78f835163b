import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** An error of the Graph API. https://developers.facebook.com/docs/graph-api/guides/error-handling */
export function graphError(status: number, code: number, message: string, more: Record<string, unknown> = {}) {
  const error = { message, type: "OAuthException", code, is_transient: false, fbtrace_id: "ASandboxTrace", ...more };
  return HttpResponse.json({ error }, { status });
}

export function unknownPath(path: string) {
  return graphError(400, 2500, `Unknown path components: ${path}`);
}

/** What Meta answers when a fault is switched on. */
export function metaRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429": {
      // Meta throttles with a 400 and its own code.
      const throttled = graphError(400, 80_004, "There have been too many calls to this ad-account.");
      if (retryAfter !== undefined) throttled.headers.set("retry-after", String(retryAfter));
      return throttled;
    }
    case "502_html":
      return badGateway();
    case "token_revoked":
      return graphError(400, 190, "Error validating access token: The session has been invalidated.", {
        error_subcode: 460,
      });
    default:
      return graphError(500, 2, "An unexpected error has occurred. Please retry your request later.", {
        is_transient: true,
      });
  }
}
