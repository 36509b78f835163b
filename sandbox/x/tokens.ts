import { createHash, randomBytes } from "node:crypto";
import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { oauthError } from "./answers.ts";
import type { Grant, TokenGrant, XState } from "./state.ts";

/** "access token ... two hours": https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code */
const ACCESS_LIFETIME_MS = 7_200_000;

/** Six months, as users of the API report; X does not document it. */
const REFRESH_LIFETIME_MS = 182 * 24 * 3_600_000;

/** The same text for an unknown, used, revoked or expired token; X does not answer `invalid_grant`. */
const INVALID_TOKEN = "Value passed for the token was invalid.";

/** Handles the token endpoint and revocation. */
export function tokenHandlers(state: XState) {
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
  if (header === null) return oauthError(401, "unauthorized_client", "Missing valid authorization header");
  const failed = oauthError(401, "invalid_client", "Client authentication failed.");
  // RFC 6749 (section 5.2) requires this challenge for a client that tried the header.
  failed.headers.set("www-authenticate", 'Basic realm="oauth"');
  return failed;
}

/**
 * Checks the client. A confidential one sends `client_id:client_secret` by Basic, raw as X documents it or form-encoded
 * (RFC 6749), by `app.basic`. A public one sends its id in the body, and no header.
 */
function isClient({ app, clientId, clientSecret }: XState, header: string | null, form: URLSearchParams): boolean {
  if (app.publicClient === true) return header === null && form.get("client_id") === clientId;
  const shown = Buffer.from(/^Basic (.+)$/.exec(header ?? "")?.[1] ?? "", "base64").toString();
  if (app.basic !== "form") return shown === `${clientId}:${clientSecret}`;
  const [id, ...secret] = shown.split(":").map(formDecoded);
  return id === clientId && secret.join(":") === clientSecret;
}

/** Decodes https://www.rfc-editor.org/rfc/rfc6749#appendix-B; undefined if the text is not form-encoded. */
function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

export function secret(): string {
  return randomBytes(32).toString("base64url");
}

/** Exchanges a code for tokens. */
function exchange(state: XState, form: URLSearchParams): Response {
  const missing = missingParameter(form, ["code", "redirect_uri", "code_verifier"]);
  if (missing !== undefined) return missing;
  const given = form.get("code") ?? "";
  const code = state.codes.get(given);
  // A code works once, even if the exchange fails.
  state.codes.delete(given);
  if (code === undefined || state.clock.now() >= code.expiresAt) {
    return invalid("Value passed for the authorization code was invalid.");
  }
  if (form.get("redirect_uri") !== code.redirectUri) {
    return invalid("Value passed for the redirect uri did not match the uri of the authorization code.");
  }
  if (challengeOf(form.get("code_verifier") ?? "") !== code.challenge) {
    return invalid("Value passed for the code verifier did not match the code challenge.");
  }
  return issue(state, { userId: code.userId, scopes: code.scopes, family: secret() }, "authorization_code");
}

/** The S256 challenge of RFC 7636. */
function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/** Exchanges a refresh token, which is then used up, for a new pair. */
function refresh(state: XState, form: URLSearchParams): Response {
  const missing = missingParameter(form, ["refresh_token"]);
  if (missing !== undefined) return missing;
  const given = form.get("refresh_token") ?? "";
  state.refreshUses.set(given, (state.refreshUses.get(given) ?? 0) + 1);
  const grant = state.refresh.get(given);
  const dead = grant === undefined || state.revokedFamilies.has(grant.family) || state.clock.now() >= grant.expiresAt;
  if (dead) return invalid(INVALID_TOKEN);
  if (grant.used) {
    // A reused token reveals a copy, so the whole family ends.
    state.revokedFamilies.add(grant.family);
    return invalid(INVALID_TOKEN);
  }
  grant.used = true;
  for (const [token, { family }] of state.access) if (family === grant.family) state.access.delete(token);
  return issue(state, grant, "refresh_token");
}

function issue(
  state: XState,
  { userId, scopes, family }: Omit<Grant, "expiresAt">,
  grant_type: TokenGrant["grant_type"],
): Response {
  const now = state.clock.now();
  const access_token = secret();
  state.access.set(access_token, { userId, scopes, family, expiresAt: now + ACCESS_LIFETIME_MS });
  state.grants.add({ grant_type, user_id: userId, at: now });
  const expires_in = ACCESS_LIFETIME_MS / 1000;
  const answer = { token_type: "bearer", expires_in, access_token, scope: scopes.join(" ") };
  if (!scopes.includes("offline.access")) return HttpResponse.json(answer);
  const refresh_token = secret();
  state.refresh.set(refresh_token, { userId, scopes, family, expiresAt: now + REFRESH_LIFETIME_MS, used: false });
  return HttpResponse.json({ ...answer, refresh_token });
}

/**
 * Revokes all tokens of the family for a refresh token (RFC 7009, 2.1), but only the token itself for an access token.
 */
function revoke(state: XState, form: URLSearchParams): Response {
  const missing = missingParameter(form, ["token"]);
  if (missing !== undefined) return missing;
  const token = form.get("token") ?? "";
  const grant = state.refresh.get(token);
  if (grant !== undefined) state.revokedFamilies.add(grant.family);
  state.access.delete(token);
  return HttpResponse.json({ revoked: true });
}

/** Revokes all tokens at once, as when the person removes the app in X's settings. */
export function revokeAll(state: XState): void {
  for (const { family } of [...state.access.values(), ...state.refresh.values()]) state.revokedFamilies.add(family);
}

function missingParameter(form: URLSearchParams, names: readonly string[]): Response | undefined {
  const missing = names.find((name) => !form.get(name));
  return missing === undefined ? undefined : invalid(`Missing required parameter [${missing}].`);
}

function invalid(description: string): Response {
  return oauthError(400, "invalid_request", description);
}
