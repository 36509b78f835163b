import type { NetworkAnswer } from "../networks/safe-fetch.ts";

/** The two members of an OAuth error body that are read: the code, and X's words where the code says too little. */
export interface ErrorBody {
  readonly error: string | undefined;
  readonly description: string;
}

/** Whether an error says that what was shown (a refresh token, a code) is of no use any more. */
export type Ends = (body: ErrorBody) => boolean;

/** `final`: what was shown is of no use. `client`: the app's own credentials failed. `other`: it may be asked again. */
export interface OAuthRefusal {
  readonly why: "final" | "client" | "other";
  /** The network's own error code; where it has none, the status. */
  readonly code: string;
}

/** Once they are fixed, what was granted still works. */
const CLIENT_ERRORS: ReadonlySet<string> = new Set(["invalid_client", "unauthorized_client"]);

/**
 * X says `invalid_request` of a refresh token that was used, revoked or has expired, where RFC 6749 wants
 * `invalid_grant`; only its words set that apart from a request that was wrong otherwise.
 */
const X_DEAD_TOKEN = /value passed for the token was invalid/i;

/** Narrow on purpose: a wider reading would ask a person to authorize again while the grant still works. */
export const endsGrant: Ends = ({ error, description }) =>
  error === "invalid_grant" || (error === "invalid_request" && X_DEAD_TOKEN.test(description));

/** A code is shown once: whatever is said of the request with it, a new authorization is what helps. */
export const endsAuthorization: Ends = ({ error }) => error !== undefined;

/**
 * What an answer of the token endpoint with a status of 400 or more says. A 401 is about the client (RFC 6749, section
 * 5.2, which wants it with `WWW-Authenticate` for failed Basic), unless its body says otherwise.
 */
export function readRefusal({ status, text }: Pick<NetworkAnswer, "status" | "text">, ends: Ends): OAuthRefusal {
  const body = parseErrorBody(text);
  const code = body.error === undefined ? `HTTP ${status}` : toErrorCode(body.error);
  const isClients = status === 401 ? !endsGrant(body) : CLIENT_ERRORS.has(body.error ?? "");
  if (isClients) return { why: "client", code };
  return { why: (status === 400 || status === 401) && ends(body) ? "final" : "other", code };
}

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

/** An error code in the form of all registered ones; any other text may be forged. */
export function toErrorCode(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : "unknown_error";
}
