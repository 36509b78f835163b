import { createHash, randomBytes } from "node:crypto";
import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { signalRevoked } from "./activity-subscriptions-and-stream.ts";
import { oauthError } from "./error-answers.ts";
import type { Grant, TokenGrant, XState } from "./state.ts";

/**
 * Lifetime of an access token, which X documents as "two hours":
 * https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code
 */
const ACCESS_LIFETIME_MS = 7_200_000;

/** Lifetime of a refresh token: six months, as users of X's API report. X does not document it. */
const REFRESH_LIFETIME_MS = 182 * 24 * 3_600_000;

/**
 * Text of X's error for an unknown, used, revoked or expired token. Its code is `invalid_request`, not the
 * `invalid_grant` of RFC 6749.
 */
const INVALID_TOKEN = "Value passed for the token was invalid.";

/** Handles requests to issue, refresh and revoke tokens. */
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
  // RFC 6749 (section 5.2) requires this challenge if the client sent its credentials in the header.
  failed.headers.set("www-authenticate", 'Basic realm="oauth"');
  return failed;
}

/**
 * Checks the app's credentials. A confidential client sends `client_id:client_secret` by Basic, raw or form-encoded as
 * `app.basic` says. A public client sends its id in the body, and no header.
 */
function isClient({ app, clientId, clientSecret }: XState, header: string | null, form: URLSearchParams): boolean {
  if (app.publicClient === true) return header === null && form.get("client_id") === clientId;
  const shown = Buffer.from(/^Basic (.+)$/.exec(header ?? "")?.[1] ?? "", "base64").toString();
  if (app.basic !== "form") return shown === `${clientId}:${clientSecret}`;
  const [id, ...secret] = shown.split(":").map(formDecoded);
  return id === clientId && secret.join(":") === clientSecret;
}

/** Decodes a form-encoded text (https://www.rfc-editor.org/rfc/rfc6749#appendix-B); undefined if it is malformed. */
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

/** Exchanges an authorization code for tokens. */
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

/** Returns the PKCE challenge (RFC 7636, S256) of a verifier. */
function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/** Exchanges a refresh token for a new pair of tokens. A refresh token works once. */
function refresh(state: XState, form: URLSearchParams): Response {
  const missing = missingParameter(form, ["refresh_token"]);
  if (missing !== undefined) return missing;
  const given = form.get("refresh_token") ?? "";
  state.refreshUses.set(given, (state.refreshUses.get(given) ?? 0) + 1);
  const grant = state.refresh.get(given);
  const dead = grant === undefined || state.revokedFamilies.has(grant.family) || state.clock.now() >= grant.expiresAt;
  if (dead) return invalid(INVALID_TOKEN);
  if (grant.used) {
    // A refresh token that is used twice must have been copied, so all tokens of its authorization end.
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
 * Revokes a token. A refresh token takes all tokens of its authorization with it (RFC 7009, 2.1); an access token is
 * revoked alone.
 */
function revoke(state: XState, form: URLSearchParams): Response {
  const missing = missingParameter(form, ["token"]);
  if (missing !== undefined) return missing;
  const token = form.get("token") ?? "";
  const grant = state.refresh.get(token);
  if (grant !== undefined) {
    state.revokedFamilies.add(grant.family);
    signalRevoked(state, grant.userId);
  }
  state.access.delete(token);
  return HttpResponse.json({ revoked: true });
}

/** Revokes all tokens, as if the person removed the app in X's settings. */
export function revokeAll(state: XState): void {
  const grants = [...state.access.values(), ...state.refresh.values()];
  for (const { family } of grants) state.revokedFamilies.add(family);
  for (const userId of new Set(grants.map((grant) => grant.userId))) signalRevoked(state, userId);
}

function missingParameter(form: URLSearchParams, names: readonly string[]): Response | undefined {
  const missing = names.find((name) => !form.get(name));
  return missing === undefined ? undefined : invalid(`Missing required parameter [${missing}].`);
}

function invalid(description: string): Response {
  return oauthError(400, "invalid_request", description);
}
