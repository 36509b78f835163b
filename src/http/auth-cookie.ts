import { deriveKey } from "../vault/key.ts";
import type { Authorization } from "../account/oauth.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import { cookieName, setCookie } from "./cookie.ts";

/** How long a person may take on the network's consent page. */
const LIFETIME_S = 600;

const PURPOSE = "reachlog_oauth";

/** Keeps state and PKCE verifier in the browser that started, sealed, so that any instance can finish. */
export interface AuthCookie {
  readonly name: string;
  /** The `Set-Cookie` value. */
  encrypt(authorization: Authorization): string;
  /** The `Set-Cookie` value that takes it away. */
  readonly cleared: string;
  /** Undefined: no cookie, another key, or too old. */
  open(value: string | undefined): Authorization | undefined;
}

/** Lax: the redirect back from the network is a cross-site navigation and must carry it. */
export function createAuthCookie(masterKey: Uint8Array, secure: boolean, clock: () => number): AuthCookie {
  const key = deriveKey(masterKey, "oauth-cookie");
  const name = cookieName(PURPOSE, secure);
  const options = { path: "/social", sameSite: "Lax", secure } as const;
  return {
    name,
    cleared: setCookie(name, "", { ...options, maxAgeSeconds: 0 }),
    encrypt(authorization) {
      const text = JSON.stringify({ ...authorization, expires: clock() + LIFETIME_S * 1000 });
      const value = Buffer.from(encrypt(key, text, PURPOSE)).toString("base64url");
      return setCookie(name, value, { ...options, maxAgeSeconds: LIFETIME_S });
    },
    open(value) {
      if (value === undefined) return undefined;
      const text = open(key, Buffer.from(value, "base64url"), PURPOSE);
      if (text === undefined) return undefined;
      const { expires, ...authorization } = JSON.parse(text) as Authorization & { expires: number };
      return clock() < expires ? authorization : undefined;
    },
  };
}
