import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** https://core.telegram.org/bots/api#making-requests; the HTTP status is the error code. */
export function failed(error_code: number, description: string, parameters?: Record<string, unknown>) {
  const more = parameters === undefined ? {} : { parameters };
  return HttpResponse.json({ ok: false, error_code, description, ...more }, { status: error_code });
}

export function done(result: Record<string, unknown>) {
  return HttpResponse.json({ ok: true, result });
}

export function tooMany(retry_after: number) {
  return failed(429, `Too Many Requests: retry after ${retry_after}`, { retry_after });
}

/** What Telegram answers when a fault is switched on. */
export function telegramRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429":
      return retryAfter === undefined ? failed(429, "Too Many Requests") : tooMany(retryAfter);
    case "502_html":
      return badGateway();
    case "channel_archived":
      return failed(403, "Forbidden: bot was kicked from the supergroup chat");
    case "bot_blocked":
      return failed(403, "Forbidden: bot was blocked by the user");
    case "token_revoked":
      return failed(401, "Unauthorized");
    default:
      return failed(500, "Internal Server Error");
  }
}
