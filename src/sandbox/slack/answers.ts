import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** Webhooks answer in plain words. https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks */
export function plain(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}

export function rateLimited(retryAfterS: number | undefined): Response {
  return plain(429, "rate_limited", retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) });
}

/** What Slack answers when a fault is switched on. */
export function slackRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429":
      return rateLimited(retryAfter);
    case "502_html":
      return badGateway();
    case "channel_archived":
      return plain(410, "channel_is_archived");
    case "action_prohibited":
      return plain(403, "action_prohibited");
    case "token_revoked":
      return plain(404, "no_service");
    default:
      return plain(500, "rollup_error");
  }
}
