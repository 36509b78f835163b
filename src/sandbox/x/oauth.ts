import { http } from "msw";
import { ORIGINS } from "../network.ts";
import { oauthError } from "./answers.ts";
import type { XState } from "./state.ts";
import { exchange, refresh, revoke } from "./tokens.ts";

/** The token endpoint and revocation. */
export function oauthHandlers(state: XState) {
  const endpoint = `${ORIGINS.x}/2/oauth2`;
  return [
    http.post(`${endpoint}/token`, ({ request }) => withClient(state, request, grant)),
    http.post(`${endpoint}/revoke`, ({ request }) => withClient(state, request, revoke)),
  ];
}

function grant(state: XState, form: URLSearchParams): Response {
  switch (form.get("grant_type")) {
    case "authorization_code":
      return exchange(state, form);
    case "refresh_token":
      return refresh(state, form);
    default:
      return oauthError(400, "unsupported_grant_type", "grant_type wants authorization_code or refresh_token");
  }
}

async function withClient(
  state: XState,
  request: Request,
  answer: (state: XState, form: URLSearchParams) => Response,
): Promise<Response> {
  const type = request.headers.get("content-type") ?? "";
  if (!type.startsWith("application/x-www-form-urlencoded")) {
    return oauthError(400, "invalid_request", "Content-Type wants application/x-www-form-urlencoded");
  }
  const form = new URLSearchParams(await request.text());
  const header = request.headers.get("authorization");
  if (isClient(state, header, form)) return answer(state, form);
  return header === null
    ? oauthError(401, "unauthorized_client", "Missing valid authorization header")
    : failedAuthentication();
}

/** With the challenge that RFC 6749 wants (section 5.2) for a client that tried the header. */
function failedAuthentication(): Response {
  const answer = oauthError(401, "invalid_client", "Client authentication failed.");
  answer.headers.set("www-authenticate", 'Basic realm="oauth"');
  return answer;
}

/**
 * A confidential client shows `client_id:client_secret` by Basic: raw, as X documents it, so that percent-encoded is
 * another secret, or form-encoded, as RFC 6749 has it. A public client has its id in the body, and no header.
 */
function isClient({ app, clientId, clientSecret }: XState, header: string | null, form: URLSearchParams): boolean {
  if (app.publicClient === true) return header === null && form.get("client_id") === clientId;
  const shown = Buffer.from(/^Basic (.+)$/.exec(header ?? "")?.[1] ?? "", "base64").toString();
  if (app.basic !== "form") return shown === `${clientId}:${clientSecret}`;
  const [id, ...secret] = shown.split(":").map(formDecoded);
  return id === clientId && secret.join(":") === clientSecret;
}

/** https://www.rfc-editor.org/rfc/rfc6749#appendix-B; undefined when it is not form-encoded. */
function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
