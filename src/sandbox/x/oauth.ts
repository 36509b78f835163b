import { createHash, randomBytes } from "node:crypto";
import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { oauthError } from "./answers.ts";
import type { Grant, XState } from "./state.ts";

/** X: "access token ... two hours". */
const ACCESS_LIFETIME_MS = 7_200_000;

const INVALID_TOKEN = "Value passed for the token was invalid.";
const INVALID_CODE = "Value passed for the authorization code was invalid.";

/** The token endpoint and revocation. */
export function oauthHandlers(state: XState) {
  return [
    http.post(`${ORIGINS.x}/2/oauth2/token`, async ({ request }) => {
      if (!isForm(request)) return oauthError(400, "invalid_request", "Content type must be a form.");
      const form = new URLSearchParams(await request.text());
      const refused = refuseClient(state, request, form);
      if (refused !== undefined) return refused;
      if (form.get("grant_type") === "authorization_code") return exchange(state, form);
      if (form.get("grant_type") === "refresh_token") return refresh(state, form);
      return oauthError(400, "unsupported_grant_type", "grant_type is not supported");
    }),
    http.post(`${ORIGINS.x}/2/oauth2/revoke`, async ({ request }) => {
      const form = new URLSearchParams(await request.text());
      const refused = refuseClient(state, request, form);
      if (refused !== undefined) return refused;
      const token = form.get("token") ?? "";
      const grant = state.refresh.get(token) ?? state.access.get(token);
      if (grant !== undefined) state.revokedFamilies.add(grant.family);
      return HttpResponse.json({ revoked: true });
    }),
  ];
}

/** A confidential client identifies itself by raw Basic, never percent-encoded; a public one by its id in the body. */
function refuseClient(state: XState, request: Request, form: URLSearchParams) {
  const header = request.headers.get("authorization");
  if (header === null) {
    if (form.get("client_id") === state.clientId) return undefined;
    return oauthError(401, "unauthorized_client", "Missing valid authorization header");
  }
  const expected = `Basic ${Buffer.from(`${state.clientId}:${state.clientSecret}`).toString("base64")}`;
  if (header === expected) return undefined;
  return oauthError(401, "unauthorized_client", "Missing valid authorization header");
}

function isForm(request: Request): boolean {
  return request.headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") ?? false;
}

function exchange(state: XState, form: URLSearchParams) {
  const given = form.get("code") ?? "";
  const code = state.codes.get(given);
  // Single use, whatever comes of it.
  state.codes.delete(given);
  if (code === undefined || state.clock.now() > code.expiresAt) return oauthError(400, "invalid_request", INVALID_CODE);
  if (form.get("redirect_uri") !== code.redirectUri) {
    return oauthError(
      400,
      "invalid_request",
      "Value passed for the redirect uri did not match the uri of the authorization code.",
    );
  }
  const challenge = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  if (challenge !== code.challenge) {
    return oauthError(400, "invalid_request", "Value passed for the code verifier did not match the code challenge.");
  }
  return issue(state, { userId: code.userId, scopes: code.scopes, family: secret() });
}

function refresh(state: XState, form: URLSearchParams) {
  const given = form.get("refresh_token") ?? "";
  state.refreshUses.set(given, (state.refreshUses.get(given) ?? 0) + 1);
  const grant = state.refresh.get(given);
  if (grant === undefined || state.revokedFamilies.has(grant.family))
    return oauthError(400, "invalid_request", INVALID_TOKEN);
  if (grant.used) {
    // A rotated token that comes again means that somebody has a copy: the whole family ends.
    state.revokedFamilies.add(grant.family);
    return oauthError(400, "invalid_request", INVALID_TOKEN);
  }
  grant.used = true;
  for (const [token, { family }] of state.access) if (family === grant.family) state.access.delete(token);
  return issue(state, grant);
}

function issue(state: XState, { userId, scopes, family }: Omit<Grant, "expiresAt">) {
  const expiresAt = state.clock.now() + ACCESS_LIFETIME_MS;
  const access = secret();
  state.access.set(access, { userId, scopes, family, expiresAt });
  const answer = {
    token_type: "bearer",
    expires_in: ACCESS_LIFETIME_MS / 1000,
    access_token: access,
    scope: scopes.join(" "),
  };
  if (!scopes.includes("offline.access")) return HttpResponse.json(answer);
  const rotated = secret();
  state.refresh.set(rotated, { userId, scopes, family, expiresAt: Infinity, used: false });
  return HttpResponse.json({ ...answer, refresh_token: rotated });
}

export function secret(): string {
  return randomBytes(32).toString("base64url");
}
