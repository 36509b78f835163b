import * as oauth from "oauth4webapi";
import { NetworkFault, USER_AGENT, type SafeFetch } from "../networks/safe-fetch.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/**
 * OAuth scopes that the service asks for: to send and read DMs, to read posts, users, followers and lists, and to get a
 * refresh token. https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code
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

/**
 * Timeout of a token request, in ms. It is long because a lost answer may cost the grant, if the network has replaced
 * the refresh token already.
 */
const TOKEN_TIMEOUT_MS = 30_000;

/** Assumed lifetime of an access token, in seconds, if X reports none. X documents two hours. */
const DEFAULT_LIFETIME_S = 7200;

export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** When the access token expires, in ms since the epoch. */
  readonly expiresAt: number;
  readonly scopes: readonly string[];
}

/**
 * Error of an OAuth request: `rejected` if the code or refresh token no longer works, `unavailable` for any other
 * failure, such as no answer. The message holds the network's own error code, never a token or a code.
 */
export class OAuthError extends ServiceError<"rejected" | "unavailable"> {
  override readonly name = "OAuthError";
  /**
   * True if the network may have executed the request although it failed, so that the code or refresh token may be used
   * up.
   */
  readonly isUnsettled: boolean;
  constructor(kind: OAuthError["kind"], message: string, isUnsettled = false) {
    super(kind, message);
    this.isUnsettled = isUnsettled;
  }
}

/** An authorization in progress. The browser keeps it in an encrypted cookie until the network redirects back. */
export interface Authorization {
  readonly state: string;
  readonly verifier: string;
  /** Page of the console to which the browser returns. Default: the overview. */
  readonly back?: string;
}

/** The OAuth client of the X app. Its methods throw {@link OAuthError}. */
export type OAuth = ReturnType<typeof createOAuth>;

/**
 * How client id and secret are encoded for Basic authentication: as they are (`raw`), as X documents, or form-encoded
 * (`form`), as RFC 6749 requires.
 */
export type BasicEncoding = "raw" | "form";

export interface OAuthOptions {
  readonly clientId: string;
  /** Client secret of the X app. Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  readonly basicEncoding: BasicEncoding;
  readonly apiUrl: string;
  readonly authorizeUrl: string;
  readonly redirectUri: string;
  readonly safeFetch: SafeFetch;
  readonly clock: () => number;
}

/** Creates a client for OAuth 2.0 authorization codes with PKCE (RFC 7636, S256) as X implements them. */
export function createOAuth(options: OAuthOptions) {
  const server: oauth.AuthorizationServer = {
    issuer: new URL(options.apiUrl).origin,
    authorization_endpoint: options.authorizeUrl,
    token_endpoint: `${options.apiUrl}/2/oauth2/token`,
    revocation_endpoint: `${options.apiUrl}/2/oauth2/revoke`,
  };
  const client: oauth.Client = { client_id: options.clientId };
  const authenticate = createClientAuth(options);
  const request = (ends: Ends) => ({
    [oauth.customFetch]: throughSafeFetch(options, ends),
    // The configuration accepts plain http only for this machine and for hosts in PLAIN_HTTP_HOSTS.
    [oauth.allowInsecureRequests]: true,
  });

  return {
    /**
     * Begins an authorization: returns a new state, a PKCE verifier, and the URL of the network to which the browser is
     * sent.
     */
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
    /**
     * Checks that the OAuth callback (X's redirect back to this service) belongs to this authorization, and exchanges
     * its code for tokens.
     */
    exchange: (redirect: URLSearchParams, { state, verifier }: Authorization) =>
      translated(async () => {
        const parameters = checkRedirect(() => oauth.validateAuthResponse(server, client, redirect, state));
        const response = await oauth.authorizationCodeGrantRequest(
          server,
          client,
          authenticate,
          parameters,
          options.redirectUri,
          verifier,
          request(endsAuthorization),
        );
        return toTokenPair(await oauth.processAuthorizationCodeResponse(server, client, response), options.clock());
      }),
    refresh: (refreshToken: string) =>
      translated(async () => {
        const how = request(endsGrant);
        const response = await oauth.refreshTokenGrantRequest(server, client, authenticate, refreshToken, how);
        return toTokenPair(await oauth.processRefreshTokenResponse(server, client, response), options.clock());
      }),
    /** Revokes a token. Revoking an unknown token is no error (RFC 7009). */
    revoke: (token: string) =>
      translated(async () => {
        const response = await oauth.revocationRequest(server, client, authenticate, token, request(endsGrant));
        await oauth.processRevocationResponse(response);
      }),
  };
}

function createClientAuth({ clientSecret, basicEncoding }: OAuthOptions): oauth.ClientAuth {
  if (clientSecret === undefined) return oauth.None();
  return (server, client, body, headers) => {
    const secret = clientSecret.reveal();
    if (basicEncoding === "form") return oauth.ClientSecretBasic(secret)(server, client, body, headers);
    headers.set("authorization", `Basic ${btoa(`${client.client_id}:${secret}`)}`);
  };
}

function throughSafeFetch(options: OAuthOptions, ends: Ends) {
  return async (
    url: string,
    init: oauth.CustomFetchOptions<string, BodyInit | null | undefined>,
  ): Promise<Response> => {
    const { status, headers, text } = await options.safeFetch(url, {
      method: init.method,
      // Without this header the library would send its own name.
      headers: { ...init.headers, "user-agent": USER_AGENT },
      // The OAuth library sends only form-encoded bodies, so no other kind is converted here.
      body: init.body instanceof URLSearchParams ? init.body.toString() : undefined,
      timeoutMs: TOKEN_TIMEOUT_MS,
    });
    // The library ignores the body of a 401 with a `WWW-Authenticate` header, and loses the status if the body is
    // malformed. So errors are read here.
    if (status >= 400) throw toOAuthError(options, { status, text }, ends);
    return new Response(text, { status, headers });
  };
}

/**
 * Converts an error answer (status 400 or more) of the token endpoint, and names the network's own code. After a 5xx
 * the token may be used up. A 401 means wrong client credentials, unless its body says otherwise.
 */
function toOAuthError(
  options: OAuthOptions,
  { status, text }: { readonly status: number; readonly text: string },
  ends: Ends,
) {
  const body = parseErrorBody(text);
  const code = body.error === undefined ? `HTTP ${status}` : toErrorCode(body.error);
  // By a 401 the network refuses the credentials of the app (RFC 6749, section 5.2), unless the body says that the
  // grant has ended.
  const isClients = status === 401 ? !endsGrant(body) : CLIENT_ERRORS.has(body.error ?? "");
  if (isClients) return new OAuthError("unavailable", `${code}: ${whatToCheck(options)}`);
  const isFinal = (status === 400 || status === 401) && ends(body);
  return isFinal ? new OAuthError("rejected", code) : unexpected(status >= 500, `: ${code}`);
}

function unexpected(isUnsettled: boolean, what = ""): OAuthError {
  return new OAuthError("unavailable", `the network's token endpoint did not answer as expected${what}`, isUnsettled);
}

/**
 * Matches client ids and secrets that look the same in both encodings of Basic authentication, so that the encoding
 * cannot be at fault.
 */
const SAME_ENCODED = /^[\w.*-]*$/;

function whatToCheck({ clientId, clientSecret }: OAuthOptions): string {
  const isSame = SAME_ENCODED.test(clientId + (clientSecret?.reveal() ?? ""));
  return `check X_CLIENT_ID and X_CLIENT_SECRET${isSame ? "" : ", or X_BASIC_ENCODING"}`;
}

function toTokenPair(answer: oauth.TokenEndpointResponse, now: number): TokenPair {
  return {
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token,
    expiresAt: now + (answer.expires_in ?? DEFAULT_LIFETIME_S) * 1000,
    scopes: (answer.scope ?? SCOPES.join(" ")).split(" "),
  };
}

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (fault) {
    if (fault instanceof OAuthError) throw fault;
    if (fault instanceof oauth.AuthorizationResponseError) throw new OAuthError("rejected", toErrorCode(fault.error));
    // If the answer is lost or malformed, the network may still have issued tokens and used up the code or refresh
    // token.
    throw unexpected(!(fault instanceof NetworkFault && fault.certainlyNotSent));
  }
}

/**
 * Checks a redirect, and throws `rejected` if it does not belong to the authorization. The OAuth library uses the same
 * code for this and for a faulty answer of the network, so the two are checked apart.
 */
function checkRedirect(check: () => URLSearchParams): URLSearchParams {
  try {
    const parameters = check();
    const [code, ...more] = parameters.getAll("code");
    if (code !== undefined && code !== "" && more.length === 0) return parameters;
  } catch (fault) {
    if (fault instanceof oauth.AuthorizationResponseError) throw fault;
  }
  throw new OAuthError("rejected", "the redirect does not match the authorization that was started");
}

/**
 * The members that are read of an OAuth error body: the code, and X's description, because some codes of X have several
 * meanings.
 */
interface ErrorBody {
  readonly error: string | undefined;
  readonly description: string;
}

/** Function that is true if an OAuth error means that the code or refresh token no longer works. */
type Ends = (body: ErrorBody) => boolean;

/** OAuth error codes for wrong credentials of the app. Once the operator has corrected those, the grant works again. */
const CLIENT_ERRORS: ReadonlySet<string> = new Set(["invalid_client", "unauthorized_client"]);

/**
 * Matches X's description of a refresh token that was used, revoked or has expired. X sends it with `invalid_request`,
 * where RFC 6749 requires `invalid_grant`.
 */
const X_DEAD_TOKEN = /value passed for the token was invalid/i;

/**
 * True if an OAuth error means that the refresh token no longer works. It matches few errors, because after a false
 * match the operator would have to authorize again for nothing.
 */
const endsGrant: Ends = ({ error, description }) =>
  error === "invalid_grant" || (error === "invalid_request" && X_DEAD_TOKEN.test(description));

/**
 * True for every OAuth error about an authorization code. A code works only once, so the operator must authorize again.
 */
const endsAuthorization: Ends = ({ error }) => error !== undefined;

function parseErrorBody(text: string): ErrorBody {
  try {
    const { error, error_description: description } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return {
      error: typeof error === "string" ? error : undefined,
      description: typeof description === "string" ? description : "",
    };
  } catch {
    return { error: undefined, description: "" };
  }
}

/**
 * Returns the network's OAuth error code if it looks like one, else `unknown_error`, because an attacker may have put
 * any text there.
 */
function toErrorCode(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : "unknown_error";
}
