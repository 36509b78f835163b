import { deriveKey } from "../account/key.ts";
import { open, seal } from "../account/seal.ts";
import type { Authentication } from "./auth.ts";
import { readCookie } from "./auth-cookie.ts";

/** How long a browser stays signed in to the console. */
const LIFETIME_S = 12 * 3600;

const NAME = "reachlog_session";

/** Signs browsers in to the console with a token that is asked for once. */
export interface Sessions {
  /** True when this browser may see the console: signed in, or no token is configured at all. */
  admits(request: Request): boolean;
  /** The `Set-Cookie` value for a right token; undefined for a wrong one. */
  signIn(token: string): string | undefined;
}

export function createSessions(
  masterKey: Uint8Array,
  authentication: Authentication,
  secure: boolean,
  clock: () => number,
): Sessions {
  const key = deriveKey(masterKey, "console-session");
  return {
    admits(request) {
      if (!authentication.hasTokens) return true;
      const value = readCookie(request, NAME);
      if (value === undefined) return false;
      const expires = open(key, Buffer.from(value, "base64url"), NAME);
      return expires !== undefined && clock() < Number(expires);
    },
    signIn(token) {
      if (authentication.identify(token) === undefined) return undefined;
      const value = Buffer.from(seal(key, String(clock() + LIFETIME_S * 1000), NAME)).toString("base64url");
      const flags = `Path=/; Max-Age=${LIFETIME_S}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
      return `${NAME}=${value}; ${flags}`;
    },
  };
}
