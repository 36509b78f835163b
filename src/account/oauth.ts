import * as oauth from "oauth4webapi";
import { NetworkFault, USER_AGENT, type SafeFetch } from "../networks/safe-fetch.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/**
 * OAuth scopes that the service requests: DMs (write needs read), users, followers, and `offline.access` for a refresh
 * token. https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code
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
 * Time-out of a token request. It is long, because the network may have rotated the refresh token before it answers.
 */
const TOKEN_TIMEOUT_MS = 30_000;

/** Lifetime of an access token for which X reports none; X documents two hours. */
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
   * True if the network may have carried out the failed request all the same, and used up the code or refresh token.
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
}

/** The OAuth client of the X app. Its methods throw {@link OAuthError}. */
export type OAuth = ReturnType<typeof createOAuth>;

/**
 * How Basic authentication encodes client id and secret: `raw`, as X documents, or `form` (form-encoded), as RFC 6749
 * requires.
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
    // The configuration allows plain HTTP for loopback only.
    [oauth.allowInsecureRequests]: true,
  });

  return {
    /**
     * Begins an authorization: returns a fresh state and PKCE verifier, and the URL that sends the browser to the
     * network.
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
     * Checks the network's redirect against the authorization that began it, and exchanges the redirect's code for
     * tokens.
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
      // The library sends its own name if no user agent is given.
      headers: { ...init.headers, "user-agent": USER_AGENT },
      // The library sends forms only.
      body: init.body instanceof URLSearchParams ? init.body.toString() : undefined,
      timeoutMs: TOKEN_TIMEOUT_MS,
    });
    // The library ignores the body of an answer with a challenge, and loses the status if the body is malformed.
    if (status >= 400) throw toOAuthError(options, { status, text }, ends);
    return new Response(text, { status, headers });
  };
}

/**
 * Converts the token endpoint's answer with a status of 400 or more to an error, which names the network's own code or
 * the status. After a 5xx the work may be done. A 401 concerns the client, unless its body says otherwise.
 */
function toOAuthError(
  options: OAuthOptions,
  { status, text }: { readonly status: number; readonly text: string },
  ends: Ends,
) {
  const body = parseErrorBody(text);
  const code = body.error === undefined ? `HTTP ${status}` : toErrorCode(body.error);
  // RFC 6749 (section 5.2) requires a 401 with `WWW-Authenticate` for a failed Basic authentication of the client.
  const isClients = status === 401 ? !endsGrant(body) : CLIENT_ERRORS.has(body.error ?? "");
  if (isClients) return new OAuthError("unavailable", `${code}: ${whatToCheck(options)}`);
  const isFinal = (status === 400 || status === 401) && ends(body);
  return isFinal ? new OAuthError("rejected", code) : unexpected(status >= 500, `: ${code}`);
}

function unexpected(isUnsettled: boolean, what = ""): OAuthError {
  return new OAuthError("unavailable", `the network's token endpoint did not answer as expected${what}`, isUnsettled);
}

/** Matches a text that both encodings of Basic authentication leave unchanged. */
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
    // A lost or malformed answer is useless here, but the network has issued it and used up the code or token.
    throw unexpected(!(fault instanceof NetworkFault && fault.certainlyNotSent));
  }
}

/**
 * Throws `rejected` only for a redirect that does not fit the authorization; the OAuth library reports that and a wrong
 * answer of the network with one code.
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

/** The members of an OAuth error body that are read: the code, and X's description where the code is ambiguous. */
interface ErrorBody {
  readonly error: string | undefined;
  readonly description: string;
}

/** Function that is true if an OAuth error means that the code or refresh token no longer works. */
type Ends = (body: ErrorBody) => boolean;

/** OAuth error codes about the app's own credentials. Once those are fixed, an existing grant still works. */
const CLIENT_ERRORS: ReadonlySet<string> = new Set(["invalid_client", "unauthorized_client"]);

/**
 * Matches X's description of a refresh token that was used, revoked or has expired. X answers it with
 * `invalid_request`, where RFC 6749 requires `invalid_grant`.
 */
const X_DEAD_TOKEN = /value passed for the token was invalid/i;

/**
 * True if an OAuth error means that the refresh token no longer works. Narrow on purpose: a wider match would ask the
 * operator to authorize again while the grant still works.
 */
const endsGrant: Ends = ({ error, description }) =>
  error === "invalid_grant" || (error === "invalid_request" && X_DEAD_TOKEN.test(description));

/** True for any OAuth error about an authorization code: a code works once, so only a new authorization helps. */
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
 * Returns an OAuth error code that has the form of all registered ones, else `unknown_error`, because other text may be
 * forged.
 */
function toErrorCode(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : "unknown_error";
}
