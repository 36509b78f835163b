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

/** Versions that Discord answers to; an address without one is of the first. https://docs.discord.com/developers/reference#api-versioning */
const VERSIONS = { first: 6, last: 10 } as const;

/** The first version that tells seconds: https://docs.discord.com/developers/change-log#api-and-gateway-v8 */
const TELLS_SECONDS = 8;

/** The API's version that an address asks for; undefined: there is no such version. */
export function versionOf(path: string): number | undefined {
  const version = Number(/\/api\/v(\d+)\//.exec(path)?.[1] ?? VERSIONS.first);
  return version >= VERSIONS.first && version <= VERSIONS.last ? version : undefined;
}

export function unknownVersion(): Response {
  return failed(400, 50_041, "Invalid API version");
}

/** The body has fractions of a second, the header whole ones; both have milliseconds in the first versions. */
export function rateLimited(seconds: number, version = VERSIONS.last as number): Response {
  const inMs = version < TELLS_SECONDS;
  const retry_after = inMs ? Math.ceil(seconds * 1000) : seconds;
  const headers = { "retry-after": String(Math.ceil(retry_after)), "x-ratelimit-scope": "user" };
  const body = { message: "You are being rate limited.", retry_after, global: false };
  return HttpResponse.json(body, { status: 429, headers });
}

/** What the proxy in front of Discord answers to an address that asked too much. */
function banned(): Response {
  return new Response("error code: 1015", { status: 429, headers: { "content-type": "text/plain" } });
}

/** What Discord answers when a fault is switched on. */
export function discordRefusal({ kind, retryAfter }: Fault, path: string): Response {
  switch (kind) {
    case "429":
      return retryAfter === undefined ? banned() : rateLimited(retryAfter, versionOf(path));
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
