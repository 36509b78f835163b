import { deriveKey } from "../vault/key.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import type { ApiToken } from "../config/tokens.ts";
import type { Authentication } from "./auth.ts";
import { cookieName, readCookie, setCookie } from "./cookie.ts";

/** How long a browser stays signed in to the console. */
const LIFETIME_S = 12 * 3600;

const PURPOSE = "reachlog_session";

/** Signs browsers in to the console with a token that is asked for once. */
export interface Sessions {
  /** The name of the cookie. */
  readonly cookie: string;
  /** True when this browser may see the console: signed in, or no token is configured at all. */
  admits(request: Request): boolean;
  /** The `Set-Cookie` value for a right token; undefined for a wrong one. */
  signIn(token: string): string | undefined;
}

/** What a session's cookie holds, sealed: it ends with the token that it was opened with. */
interface Session {
  readonly expires: number;
  readonly token: ApiToken;
}

export function createSessions(
  masterKey: Uint8Array,
  authentication: Authentication,
  secure: boolean,
  clock: () => number,
): Sessions {
  const key = deriveKey(masterKey, "console-session");
  const name = cookieName(PURPOSE, secure);
  return {
    cookie: name,
    admits(request) {
      if (!authentication.guardsConsole) return true;
      const text = open(key, Buffer.from(readCookie(request, name) ?? "", "base64url"), PURPOSE);
      if (text === undefined) return false;
      const { expires, token } = JSON.parse(text) as Session;
      return clock() < expires && authentication.knows(token);
    },
    signIn(given) {
      const token = authentication.identify(given);
      if (token === undefined) return undefined;
      const session: Session = { expires: clock() + LIFETIME_S * 1000, token };
      const value = Buffer.from(encrypt(key, JSON.stringify(session), PURPOSE)).toString("base64url");
      return setCookie(name, value, { path: "/", maxAgeSeconds: LIFETIME_S, sameSite: "Strict", secure });
    },
  };
}
