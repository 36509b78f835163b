import * as oauth from "oauth4webapi";
import type { SafeFetch } from "../networks/safe-fetch.ts";
import type { Secret } from "../secret.ts";

/**
 * What the service asks for: DMs (write needs read), users, followers, and `offline.access` for a refresh token.
 * https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code
 */
export const SCOPES = [
  "dm.write",
  "dm.read",
  "tweet.read",
  "users.read",
  "follows.read",
  "list.read",
  "offline.access",
];

/** A refresh must not be given up early: the network may have rotated the token already. */
const TOKEN_TIMEOUT_MS = 30_000;

/** Where X does not say how long a token lives: its documented two hours. */
const DEFAULT_LIFETIME_S = 7200;

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** ms since the epoch. */
  readonly expiresAt: number;
  readonly scopes: readonly string[];
}

/**
 * `refused`: the network says no, for good. `unreachable`: it could not be asked, or failed. The message holds the
 * network's own error code, never a token or a code.
 */
export class OAuthError extends Error {
  override readonly name = "OAuthError";
  readonly kind: "refused" | "unreachable";
  constructor(kind: OAuthError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** One authorization in flight: what the browser keeps (sealed) until it comes back. */
export interface Authorization {
  readonly state: string;
  readonly verifier: string;
}

export interface OAuth {
  /** A fresh state and PKCE verifier, and the URL that sends the browser to the network. */
  begin(): Promise<Authorization & { readonly url: string }>;
  /** Checks the redirect against `authorization` and exchanges the code. Throws {@link OAuthError}. */
  exchange(redirect: URLSearchParams, authorization: Authorization): Promise<TokenPair>;
  refresh(refreshToken: string): Promise<TokenPair>;
  /** Throws {@link OAuthError}; revoking an unknown token is no error (RFC 7009). */
  revoke(token: string): Promise<void>;
}

export interface OAuthOptions {
  readonly clientId: string;
  readonly clientSecret: Secret | undefined;
  readonly apiUrl: string;
  readonly authorizeUrl: string;
  readonly redirectUri: string;
  readonly safeFetch: SafeFetch;
  readonly clock: () => number;
}

/** OAuth 2.0 authorization code with PKCE (RFC 7636, S256) as X speaks it. */
export function createOAuth(options: OAuthOptions): OAuth {
  const server: oauth.AuthorizationServer = {
    issuer: new URL(options.apiUrl).origin,
    authorization_endpoint: options.authorizeUrl,
    token_endpoint: `${options.apiUrl}/2/oauth2/token`,
    revocation_endpoint: `${options.apiUrl}/2/oauth2/revoke`,
  };
  const client: oauth.Client = { client_id: options.clientId };
  const authenticate = options.clientSecret === undefined ? oauth.None() : rawBasic(options.clientSecret);
  const request = {
    [oauth.customFetch]: throughSafeFetch(options.safeFetch),
    // The configuration allows plain HTTP for loopback only.
    [oauth.allowInsecureRequests]: true,
  };

  return {
    async begin() {
      const state = oauth.generateRandomState();
      const verifier = oauth.generateRandomCodeVerifier();
      const url = new URL(options.authorizeUrl);
      url.search = new URLSearchParams({
        response_type: "code",
        client_id: options.clientId,
        redirect_uri: options.redirectUri,
        scope: SCOPES.join(" "),
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }).toString();
      return { state, verifier, url: url.href };
    },
    exchange: (redirect, { state, verifier }) =>
      translated(async () => {
        const parameters = checkRedirect(() => oauth.validateAuthResponse(server, client, redirect, state));
        const response = await oauth.authorizationCodeGrantRequest(
          server,
          client,
          authenticate,
          parameters,
          options.redirectUri,
          verifier,
          request,
        );
        return pairOf(await oauth.processAuthorizationCodeResponse(server, client, response), options.clock());
      }),
    refresh: (refreshToken) =>
      translated(async () => {
        const response = await oauth.refreshTokenGrantRequest(server, client, authenticate, refreshToken, request);
        return pairOf(await oauth.processRefreshTokenResponse(server, client, response), options.clock());
      }),
    revoke: (token) =>
      translated(async () => {
        const response = await oauth.revocationRequest(server, client, authenticate, token, request);
        await oauth.processRevocationResponse(response);
      }),
  };
}

/** X documents the raw client id and secret in Basic, not RFC 6749's percent-encoded ones. */
function rawBasic(secret: Secret): oauth.ClientAuth {
  return (_server, client, _body, headers) => {
    headers.set("authorization", `Basic ${btoa(`${client.client_id}:${secret.reveal()}`)}`);
  };
}

function throughSafeFetch(safeFetch: SafeFetch) {
  return async (
    url: string,
    init: oauth.CustomFetchOptions<string, BodyInit | null | undefined>,
  ): Promise<Response> => {
    const { status, headers, text } = await safeFetch(url, {
      method: init.method,
      headers: init.headers,
      // The library sends forms only.
      body: init.body instanceof URLSearchParams ? init.body.toString() : undefined,
      timeoutMs: TOKEN_TIMEOUT_MS,
    });
    return new Response(text, { status, headers });
  };
}

function pairOf(answer: oauth.TokenEndpointResponse, now: number): TokenPair {
  return {
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token,
    expiresAt: now + (answer.expires_in ?? DEFAULT_LIFETIME_S) * 1000,
    scopes: (answer.scope ?? SCOPES.join(" ")).split(" "),
  };
}

/** X refuses with 400 or 401 and an OAuth error body; anything else means that it could not be asked. */
async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (fault) {
    if (fault instanceof oauth.ResponseBodyError) throw refusal(fault.status, fault.error);
    if (fault instanceof oauth.WWWAuthenticateChallengeError) throw refusal(fault.status, "unauthorized");
    if (fault instanceof oauth.AuthorizationResponseError) throw new OAuthError("refused", codeOf(fault.error));
    if (fault instanceof OAuthError) throw fault;
    throw new OAuthError("unreachable", "the network's token endpoint did not answer as expected");
  }
}

/** The library tells of a wrong redirect and of a wrong answer by the network with one code; only the first refuses. */
function checkRedirect(check: () => URLSearchParams): URLSearchParams {
  try {
    const parameters = check();
    const [code, ...more] = parameters.getAll("code");
    if (code !== undefined && code !== "" && more.length === 0) return parameters;
  } catch (fault) {
    if (fault instanceof oauth.AuthorizationResponseError) throw fault;
  }
  throw new OAuthError("refused", "the redirect does not fit the authorization that was started");
}

/** The app's own credentials are wrong: once they are mended, what was granted still works. */
const APP_ERRORS: ReadonlySet<string> = new Set(["invalid_client", "unauthorized_client"]);

function refusal(status: number, error: string): OAuthError {
  if (APP_ERRORS.has(error)) return new OAuthError("unreachable", `${error}: check X_CLIENT_ID and X_CLIENT_SECRET`);
  return new OAuthError(status === 400 || status === 401 ? "refused" : "unreachable", codeOf(error));
}

/** An error code as all registered ones are; a text in its place, which anybody may have written, is not repeated. */
function codeOf(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : "unknown_error";
}
