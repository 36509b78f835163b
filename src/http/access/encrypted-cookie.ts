import { parseCookie, stringifySetCookie } from "cookie";
import { STATE_TTL_MS } from "../../account/link.ts";
import type { Authorization } from "../../account/oauth.ts";
import type { Clock } from "../../platform/clock.ts";
import { encrypt, open } from "../../vault/encrypt.ts";
import { deriveKey } from "../../vault/derive-keys.ts";

export interface EncryptedCookieOptions {
  readonly name: string;
  /** Which key is derived from the master key. */
  readonly keyName: string;
  /** Default: all of the service. */
  readonly path?: string;
  readonly lifetimeSeconds: number;
}

/** The part of PUBLIC_URL that a cookie depends on. */
export type CookieSite = Pick<URL, "protocol" | "port">;

export type EncryptedCookie<Content extends object> = ReturnType<typeof createEncryptedCookie<Content>>;

/**
 * What only this service can read and write, kept by the browser, so that any instance can resume it. A link from another
 * site brings it along, as X does after an authorization; a form or script of another site does not (SameSite=Lax).
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
  // Over TLS the prefix keeps neighbours out: a browser takes such a cookie from this very host alone, for all of its
  // paths, so that no other host of the domain can slip one in (RFC 6265bis, section 4.1.3.2).
  const prefix = isSecure ? "__Host-" : "";
  // A browser keeps one jar for all ports of a host: two services there would take each other's cookie away.
  const name = prefix + (site.port === "" ? purpose : `${purpose}_${site.port}`);
  const path = isSecure ? "/" : (options.path ?? "/");
  const setCookie = (value: string, maxAge: number) =>
    stringifySetCookie({ name, value, path, maxAge, sameSite: "lax", httpOnly: true, secure: isSecure });
  return {
    name,
    /** The `Set-Cookie` value that takes it away. */
    cleared: setCookie("", 0),
    /** The `Set-Cookie` value that hands it to the browser. */
    give(content: Content): string {
      const text = JSON.stringify({ ...content, expires: clock() + lifetimeSeconds * 1000 });
      return setCookie(Buffer.from(encrypt(key, text, purpose)).toString("base64url"), lifetimeSeconds);
    },
    /** Undefined: no cookie, another key, or too old. */
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
 * State and PKCE verifier, in the browser that started, so that any instance can finish: for as long as a person may take
 * on the network's consent page.
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
