import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** An error of Google's APIs: https://cloud.google.com/apis/design/errors#http_mapping */
export function failed(code: number, status: string, message: string, reason?: string): Response {
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "googleapis.com" }];
  const error = { code, message, status, ...(reason === undefined ? {} : { details }) };
  return HttpResponse.json({ error }, { status: code });
}

export function invalid(message: string): Response {
  return failed(400, "INVALID_ARGUMENT", message);
}

export function wrongKey(): Response {
  return failed(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "API_KEY_INVALID");
}

export function wrongToken(): Response {
  return failed(403, "PERMISSION_DENIED", "The API is called without a valid token.");
}

export function noSpace(): Response {
  return failed(404, "NOT_FOUND", "Space not found.");
}

/** Google tells no time to wait. */
export function rateLimited(): Response {
  return failed(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).");
}

/** What Google Chat answers when a fault is switched on. */
export function googleChatRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429": {
      const throttled = rateLimited();
      if (retryAfter !== undefined) throttled.headers.set("retry-after", String(retryAfter));
      return throttled;
    }
    case "502_html":
      return badGateway();
    case "token_revoked":
      return wrongToken();
    case "space_deleted":
      return noSpace();
    default:
      return failed(500, "INTERNAL", "Internal error encountered.");
  }
}
