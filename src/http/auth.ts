import { createHash, timingSafeEqual } from "node:crypto";
import type { HttpConfig } from "../config/http.ts";
import { ROUTES } from "./routes.ts";

/** A caller without a token. */
export const ANONYMOUS = "anonymous";

/** Tells callers by their bearer token. */
export interface Authentication {
  /** The token's name; undefined when no token is that one. Takes as long for any wrong token. */
  identify(token: string): string | undefined;
  /** Whether a path wants a token. */
  guards(path: string): boolean;
  readonly hasTokens: boolean;
}

export function createAuthentication(config: Pick<HttpConfig, "tokens" | "authPolicy" | "openRoutes">): Authentication {
  const known = config.tokens.map(({ name, sha256 }) => ({ name, digest: Buffer.from(sha256, "hex") }));
  return {
    hasTokens: known.length > 0,
    identify(token) {
      const digest = createHash("sha256").update(token).digest();
      let found: string | undefined;
      // Every token is compared, so that the time tells nothing of which one was close.
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate.name;
      return found;
    },
    guards(path) {
      const protection = ROUTES.get(path)?.protection;
      if (protection === "token") return true;
      return protection === "strict" && config.authPolicy === "strict" && !config.openRoutes.includes(path);
    },
  };
}

/**
 * The `Authorization` header with its scheme as the bearer plugin wants it, to the letter (RFC 9110 says that case does
 * not matter); undefined when it is not a bearer token.
 */
export function canonicalBearer(authorization: string): string | undefined {
  const token = /^bearer +([\x21-\x7e]+)$/i.exec(authorization.trim())?.[1];
  return token === undefined ? undefined : `Bearer ${token}`;
}
