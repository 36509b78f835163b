import { createHash, timingSafeEqual } from "node:crypto";
import type { HttpConfig } from "../config/http.ts";
import type { ApiToken } from "../config/tokens.ts";
import { ROUTES } from "./routes.ts";

/** A caller without a token. */
export const ANONYMOUS = "anonymous";

/** Tells callers by their bearer token. */
export interface Authentication {
  /** Whose token it is; undefined when no token is that one. Takes as long for any wrong token. */
  identify(token: string): ApiToken | undefined;
  /** Whether that token is still one: it may have been taken out since. */
  knows(token: ApiToken): boolean;
  /** Whether a path wants a token. */
  guards(path: string): boolean;
  /** Whether the console wants one. */
  readonly guardsConsole: boolean;
  /** From now on these are the tokens. */
  replace(tokens: readonly ApiToken[]): void;
}

/** `isSame` compares two digests in a time that does not depend on what is in them. */
export function createAuthentication(
  config: Pick<HttpConfig, "tokens" | "authPolicy" | "openRoutes">,
  isSame: (one: Uint8Array, other: Uint8Array) => boolean = timingSafeEqual,
): Authentication {
  let known = withDigests(config.tokens);
  return {
    identify(token) {
      const digest = createHash("sha256").update(token).digest();
      let found: ApiToken | undefined;
      // Every token is compared, so that the time tells nothing of which one was close.
      for (const candidate of known) if (isSame(candidate.digest, digest)) found = candidate.token;
      return found;
    },
    knows: ({ name, sha256 }) => known.some(({ token }) => token.name === name && token.sha256 === sha256),
    guards(path) {
      const protection = ROUTES.get(path)?.protection;
      if (protection === "token") return true;
      return protection === "strict" && config.authPolicy === "strict" && !config.openRoutes.includes(path);
    },
    get guardsConsole() {
      return known.length > 0 || config.authPolicy === "strict";
    },
    replace(tokens) {
      known = withDigests(tokens);
    },
  };
}

function withDigests(tokens: readonly ApiToken[]) {
  return tokens.map((token) => ({ token, digest: Buffer.from(token.sha256, "hex") }));
}

/**
 * The `Authorization` header with its scheme as the bearer plugin wants it, to the letter (RFC 9110 says that case does
 * not matter); undefined when it is not a bearer token.
 */
export function canonicalBearer(authorization: string): string | undefined {
  const token = /^bearer +([\x21-\x7e]+)$/i.exec(authorization.trim())?.[1];
  return token === undefined ? undefined : `Bearer ${token}`;
}
