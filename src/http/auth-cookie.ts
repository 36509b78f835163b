import { deriveKey } from "../account/key.ts";
import type { Authorization } from "../account/oauth.ts";
import { open, seal } from "../account/seal.ts";

/** How long a person may take on the network's consent page. */
const LIFETIME_S = 600;

/** Keeps state and PKCE verifier in the browser that started, sealed, so that any instance can finish. */
export interface AuthCookie {
  readonly name: string;
  /** The `Set-Cookie` value. */
  seal(authorization: Authorization): string;
  /** Undefined: no cookie, another key, or too old. */
  open(value: string | undefined): Authorization | undefined;
}

export function createAuthCookie(masterKey: Uint8Array, secure: boolean, clock: () => number): AuthCookie {
  const key = deriveKey(masterKey, "oauth-cookie");
  const name = "reachlog_oauth";
  return {
    name,
    seal(authorization) {
      const text = JSON.stringify({ ...authorization, expires: clock() + LIFETIME_S * 1000 });
      const value = Buffer.from(seal(key, text, name)).toString("base64url");
      return cookie(name, value, LIFETIME_S, secure);
    },
    open(value) {
      if (value === undefined) return undefined;
      const text = open(key, Buffer.from(value, "base64url"), name);
      if (text === undefined) return undefined;
      const { expires, ...authorization } = JSON.parse(text) as Authorization & { expires: number };
      return clock() < expires ? authorization : undefined;
    },
  };
}

export function clearCookie(name: string): string {
  return cookie(name, "", 0, false);
}

/** The value of one cookie of the request. */
export function readCookie(request: Request, name: string): string | undefined {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}

/** Lax: the redirect back from the network is a cross-site navigation and must carry it. */
function cookie(name: string, value: string, maxAge: number, secure: boolean): string {
  return `${name}=${value}; Path=/social; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}
