import { parseCookie, stringifySetCookie } from "cookie";
import { STATE_TTL_MS } from "../../account/link.ts";
import type { Authorization } from "../../account/oauth.ts";
import type { Clock } from "../../platform/clock.ts";
import { encrypt, open } from "../../vault/encrypt.ts";
import { deriveKey } from "../../vault/derive-keys.ts";

export interface EncryptedCookieOptions {
  readonly name: string;
  /** Selects the key that is derived from the master key. */
  readonly keyName: string;
  /** Default: all paths of the service. */
  readonly path?: string;
  readonly lifetimeSeconds: number;
}

/** The part of PUBLIC_URL that a cookie depends on. */
export type CookieSite = Pick<URL, "protocol" | "port">;

export type EncryptedCookie<Content extends object> = ReturnType<typeof createEncryptedCookie<Content>>;

/**
 * State that the browser keeps and only this service can read and write, so that any instance can resume it. Links from
 * other sites bring it along, as X does after an authorization; their forms and scripts do not (SameSite=Lax).
 */
export function createEncryptedCookie<Content extends object>(
  options: EncryptedCookieOptions,
  masterKey: Uint8Array,
  site: CookieSite,
  clock: Clock,
) {
  const { name: purpose, lifetimeSeconds } = options;
  const isSecure = site.protocol === "https:";
  const key = deriveKey(masterKey, options.keyName);
  // Over TLS the prefix makes browsers accept the cookie from this very host only, for all of its paths. No other host
  // of the domain can plant one (RFC 6265bis, section 4.1.3.2).
  const prefix = isSecure ? "__Host-" : "";
  // A browser shares cookies between all ports of a host: two services there would overwrite each other's.
  const name = prefix + (site.port === "" ? purpose : `${purpose}_${site.port}`);
  const path = isSecure ? "/" : (options.path ?? "/");
  const setCookie = (value: string, maxAge: number) =>
    stringifySetCookie({ name, value, path, maxAge, sameSite: "lax", httpOnly: true, secure: isSecure });
  return {
    name,
    /** The `Set-Cookie` value that deletes the cookie. */
    cleared: setCookie("", 0),
    /** Returns the `Set-Cookie` value that stores the content in the browser. */
    give(content: Content): string {
      const text = JSON.stringify({ ...content, expires: clock() + lifetimeSeconds * 1000 });
      return setCookie(Buffer.from(encrypt(key, text, purpose)).toString("base64url"), lifetimeSeconds);
    },
    /** Undefined if there is no cookie, its key differs, or it is too old. */
    read({ headers }: Pick<Request, "headers">): Content | undefined {
      const value = parseCookie(headers.get("cookie") ?? "")[name];
      const text = value === undefined ? undefined : open(key, Buffer.from(value, "base64url"), purpose);
      if (text === undefined) return undefined;
      const { expires, ...content } = JSON.parse(text) as { expires: number };
      return clock() < expires ? (content as Content) : undefined;
    },
  };
}

/**
 * State and PKCE verifier, kept by the browser that started, so that any instance can finish. They last as long as the
 * operator may take on the network's consent page.
 */
const AUTHORIZATION_COOKIE = {
  name: "reachlog_oauth",
  keyName: "oauth-cookie",
  path: "/social",
  lifetimeSeconds: STATE_TTL_MS / 1_000,
} as const;

export function createAuthorizationCookie(masterKey: Uint8Array, site: CookieSite, clock: Clock) {
  return createEncryptedCookie<Authorization>(AUTHORIZATION_COOKIE, masterKey, site, clock);
}
