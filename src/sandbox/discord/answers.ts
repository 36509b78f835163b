import { HttpResponse } from "msw";
import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";

/** https://docs.discord.com/developers/reference#error-messages */
export function failed(status: number, code: number, message: string): Response {
  return HttpResponse.json({ message, code }, { status });
}

export function unknownWebhook(): Response {
  return failed(404, 10_015, "Unknown Webhook");
}

export function wrongToken(): Response {
  return failed(401, 50_027, "Invalid Webhook Token");
}

/** One field that Discord does not take: https://docs.discord.com/developers/reference#error-messages */
export function invalidForm(field: string, code: string, message: string): Response {
  const errors = { [field]: { _errors: [{ code, message }] } };
  return HttpResponse.json({ message: "Invalid Form Body", code: 50_035, errors }, { status: 400 });
}

/** The body has fractions of a second, the header whole ones. */
export function rateLimited(retry_after: number): Response {
  const headers = { "retry-after": String(Math.ceil(retry_after)), "x-ratelimit-scope": "user" };
  const body = { message: "You are being rate limited.", retry_after, global: false };
  return HttpResponse.json(body, { status: 429, headers });
}

/** What the proxy in front of Discord answers to an address that asked too much. */
function banned(): Response {
  return new Response("error code: 1015", { status: 429, headers: { "content-type": "text/plain" } });
}

/** What Discord answers when a fault is switched on. */
export function discordRefusal({ kind, retryAfter }: Fault): Response {
  switch (kind) {
    case "429":
      return retryAfter === undefined ? banned() : rateLimited(retryAfter);
    case "502_html":
      return badGateway();
    case "token_revoked":
      return wrongToken();
    case "webhook_deleted":
      return unknownWebhook();
    default:
      return failed(500, 0, "500: Internal Server Error");
  }
}
