import type { Fault } from "../faults.ts";
import { badGateway } from "../html.ts";
import { graphError } from "../meta/answers.ts";

/** https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes */
const TITLES = {
  100: "Invalid parameter",
  130_429: "Rate limit hit",
  131_026: "Message undeliverable",
  131_031: "Business Account locked",
  131_047: "Re-engagement message",
  131_056: "(Business Account, Consumer Account) pair rate limit hit",
} as const;

/** An error of the Cloud API: one of the Graph API, with words of its own beside. */
export function cloudError(status: number, code: keyof typeof TITLES, details: string): Response {
  const error_data = { messaging_product: "whatsapp", details };
  return graphError(status, code, `(#${code}) ${TITLES[code]}`, { error_data });
}

export function rateLimited(code: 130_429 | 131_056): Response {
  return cloudError(429, code, "Too many messages were sent in a short time.");
}

export function windowClosed(): Response {
  return cloudError(400, 131_047, "More than 24 hours have passed since the recipient last replied.");
}

export function tokenRefused(): Response {
  return graphError(401, 190, "Invalid OAuth access token - Cannot parse access token");
}

/** What WhatsApp answers when a fault is switched on. It tells no Retry-After by itself. */
export function whatsappRefusal({ kind, retryAfter }: Pick<Fault, "retryAfter"> & { readonly kind: string }): Response {
  switch (kind) {
    case "429": {
      const throttled = rateLimited(130_429);
      if (retryAfter !== undefined) throttled.headers.set("retry-after", String(retryAfter));
      return throttled;
    }
    case "502_html":
      return badGateway();
    case "token_revoked":
      return tokenRefused();
    case "window_closed":
      return windowClosed();
    case "account_locked":
      return cloudError(403, 131_031, "The account has been locked.");
    default:
      return graphError(500, 131_000, "(#131000) Something went wrong");
  }
}
