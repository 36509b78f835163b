/** Who may send a cookie back: `Strict` this site alone, `Lax` also a link from elsewhere that leads here. */
export interface CookieOptions {
  readonly path: string;
  readonly maxAgeSeconds: number;
  readonly sameSite: "Strict" | "Lax";
  /** Over TLS only. */
  readonly secure: boolean;
}

/**
 * Over TLS the prefix `__Host-` keeps neighbours out: a browser takes such a cookie from this very host alone, for all of
 * its paths, so that no other host of the domain can slip one in (RFC 6265bis, section 4.1.3.2).
 */
export function cookieName(name: string, secure: boolean): string {
  return secure ? `__Host-${name}` : name;
}

/** A `Set-Cookie` value for a {@link cookieName}; scripts never see the cookie. */
export function setCookie(name: string, value: string, options: CookieOptions): string {
  const { maxAgeSeconds, sameSite, secure } = options;
  const path = secure ? "/" : options.path;
  const flags = `Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${secure ? "; Secure" : ""}`;
  return `${name}=${value}; ${flags}`;
}

/** The value of one cookie of the request. */
export function readCookie(request: Request, name: string): string | undefined {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}
