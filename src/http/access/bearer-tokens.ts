import { createHash, timingSafeEqual } from "node:crypto";
import { bearer } from "@elysiajs/bearer";
import type { HttpConfig } from "../../config/http.ts";
import { hasScope, type ApiToken, type TokenIdentity, type TokenScope } from "../../config/parse-api-tokens.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";

export const ANONYMOUS = "anonymous";

export type Authentication = ReturnType<typeof createAuthentication>;

/** Settings that say who may call the API, and which endpoints need a token. */
interface AccessConfig {
  readonly tokens: HttpConfig["tokens"];
  readonly authPolicy: HttpConfig["authPolicy"];
  readonly openRoutes: HttpConfig["openRoutes"];
}

/**
 * Identifies callers by bearer token, and decides which endpoints require one. `isSame` compares two digests in
 * constant time.
 */
export function createAuthentication(
  config: AccessConfig,
  clock: Clock,
  isSame: (one: Uint8Array, other: Uint8Array) => boolean = timingSafeEqual,
  onUse: (token: ApiToken, now: number) => void = () => {},
) {
  let known = withDigests(config.tokens);
  const hasExpired = ({ expiresAt = Infinity }: ApiToken, now: number): boolean => expiresAt <= now;
  return {
    /**
     * Returns the configured token that equals the given one; undefined if there is none. Every wrong token takes the
     * same time.
     */
    identify(token: string): ApiToken | undefined {
      const digest = createHash("sha256").update(token).digest();
      let found: ApiToken | undefined;
      // The search does not stop at a match, so that its time reveals nothing about the tokens.
      for (const one of known) if (isSame(one.digest, digest)) found = one.token;
      return found;
    },
    /**
     * Returns the configured token with this identity, to check a token that a session refers to; undefined if it was
     * removed or has expired.
     */
    find({ name, sha256 }: TokenIdentity): ApiToken | undefined {
      const token = known.find((one) => one.token.name === name && one.token.sha256 === sha256)?.token;
      return token === undefined || hasExpired(token, clock()) ? undefined : token;
    },
    /** Checks a known token for an endpoint. Throws 401 if it has expired, and 403 if it lacks the endpoint's scope. */
    check(token: ApiToken, scope: TokenScope | undefined): void {
      const now = clock();
      if (hasExpired(token, now)) throw problems.expiredToken();
      if (scope !== undefined && !hasScope(token, scope)) throw problems.missingScope(scope);
      onUse(token, now);
    },
    /** True if the endpoint requires a token. */
    guards({ path, protection }: Endpoint): boolean {
      if (protection === "token") return true;
      return protection === "strict" && config.authPolicy === "strict" && !config.openRoutes.includes(path);
    },
    get guardsConsole(): boolean {
      return known.length > 0 || config.authPolicy === "strict";
    },
    list: (): readonly ApiToken[] => known.map(({ token }) => token),
    replace(tokens: readonly ApiToken[]): void {
      known = withDigests(tokens);
    },
  };
}

function withDigests(tokens: readonly ApiToken[]) {
  return tokens.map((token) => ({ token, digest: Buffer.from(token.sha256, "hex") }));
}

/**
 * Matches the scheme `Bearer` in any case (RFC 9110), followed by one token. Elysia's bearer plugin alone is not
 * enough, because it knows one case only, and accepts other schemes (`BearerXtoken`) and more than one token.
 */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;

/**
 * The function of Elysia's bearer plugin that reads the token. It is called directly: as a hook, it would run for each
 * request, and make Elysia build objects of all headers and of the query.
 */
const plugin = bearer({ extract: { header: "Bearer", query: "", body: "" } }).event.transform?.[0]?.fn as
  | ((context: { headers: { authorization: string }; query: object }) => { readonly bearer: string | undefined })
  | undefined;

/**
 * Returns the token of an `Authorization` header; undefined if the header holds none, or more than one. Tokens in other
 * headers, the query or the body are ignored.
 */
export function bearerToken(authorization: string): string | undefined {
  const token = BEARER.exec(authorization.trim())?.[1];
  return token === undefined
    ? undefined
    : plugin?.({ headers: { authorization: `Bearer ${token}` }, query: {} }).bearer;
}
