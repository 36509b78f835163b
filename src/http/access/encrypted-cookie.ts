import { parseCookie, stringifySetCookie } from "cookie";
import { STATE_TTL_MS } from "../../account/link-and-unlink-account.ts";
import type { Authorization } from "../../account/oauth.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { encrypt, open } from "../../vault/encrypt.ts";
import { deriveKey } from "../../vault/derive-keys.ts";
import type { WithHeaders } from "../server/http-response.ts";

export interface EncryptedCookieOptions {
  readonly name: string;
  /** Name of this cookie's encryption key, which is derived from the master key. */
  readonly keyName: string;
  /** URL path that the browser sends the cookie to. Default: all paths of the service. */
  readonly path?: string;
  readonly lifetimeSeconds: number;
}

/** The parts of PUBLIC_URL on which a cookie depends. */
export interface CookieSite {
  readonly protocol: string;
  readonly port: string;
}

export type EncryptedCookie<Content extends object> = ReturnType<typeof createEncryptedCookie<Content>>;

/**
 * Creates a cookie that only this service can read and write, at any instance. The browser sends it for a link on
 * another site too, but not for that site's forms and scripts (SameSite=Lax).
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
  // Over TLS, browsers accept a cookie with this prefix only from this very host and for all its paths, so that no
  // other host of the domain can set it (RFC 6265bis, section 4.1.3.2).
  const prefix = isSecure ? "__Host-" : "";
  // A browser shares cookies between all ports of a host. Without the port in the name, two services on one host would
  // overwrite each other's cookie.
  const name = prefix + (site.port === "" ? purpose : `${purpose}_${site.port}`);
  const path = isSecure ? "/" : (options.path ?? "/");
  const setCookie = (value: string, maxAge: number) =>
    stringifySetCookie({ name, value, path, maxAge, sameSite: "lax", httpOnly: true, secure: isSecure });
  return {
    name,
    /** The `Set-Cookie` value that deletes this cookie from the browser. */
    cleared: setCookie("", 0),
    /** Returns the `Set-Cookie` value that stores this content in the browser. */
    give(content: Content): string {
      const text = JSON.stringify({ ...content, expires: clock() + lifetimeSeconds * 1000 });
      return setCookie(Buffer.from(encrypt(key, text, purpose)).toString("base64url"), lifetimeSeconds);
    },
    /**
     * Returns the content of the request's cookie. Undefined if there is none, it was encrypted with another key, or it
     * has expired.
     */
    read({ headers }: WithHeaders): Content | undefined {
      const value = parseCookie(headers.get("cookie") ?? "")[name];
      const text = value === undefined ? undefined : open(key, Buffer.from(value, "base64url"), purpose);
      if (text === undefined) return undefined;
      const { expires, ...content } = JSON.parse(text) as { expires: number };
      return clock() < expires ? (content as Content) : undefined;
    },
  };
}

/**
 * Cookie that holds the state and PKCE verifier of an authorization, so that any instance can finish it. Lasts as long
 * as the operator may take on the network's consent page.
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
