import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { hasScope, type ApiToken, type TokenIdentity } from "../../config/parse-api-tokens.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { deriveKey } from "../../vault/derive-keys.ts";
import type { Authentication } from "./bearer-tokens.ts";
import { createEncryptedCookie, type CookieSite } from "./encrypted-cookie.ts";
import type { Claims } from "../../vault/secret-database.ts";
import type { WithHeaders } from "../server/http-response.ts";

const COOKIE = {
  name: "reachlog_session",
  keyName: "console-session",
  lifetimeSeconds: 12 * 3600,
};

/** The scope that each page of the console requires. A token without it opens no session. */
const SCOPE = "read";

export type Sessions = ReturnType<typeof createSessions>;

/**
 * Creates the sessions of the console. A browser signs in once with an API token; its session has the token's scopes,
 * and ends with the token.
 */
export function createSessions(options: {
  readonly masterKey: Uint8Array;
  readonly authentication: Authentication;
  readonly site: CookieSite;
  /**
   * True if the service listens on an address that only this machine can reach, so that no other machine can call it.
   */
  readonly isLocal: boolean;
  readonly claims: Claims;
  readonly clock: Clock;
}) {
  const { masterKey, authentication, site, isLocal, claims, clock } = options;
  const cookie = createEncryptedCookie<Session>(COOKIE, masterKey, site, clock);
  const ended = createEndedSessions(claims, COOKIE.lifetimeSeconds * 1_000, clock);
  const key = deriveKey(masterKey, "console-form");
  const readSession = (request: WithHeaders) => {
    const session = cookie.read(request);
    if (session === undefined || ended.isEnded(session.id)) return undefined;
    const token = authentication.find(session.token);
    return token !== undefined && hasScope(token, SCOPE) ? { id: session.id, token } : undefined;
  };
  const macFor = (request: Request): Buffer | undefined => {
    const isOpen = !authentication.guardsConsole && isLocal && !cameByProxy(request);
    const id = isOpen ? "" : readSession(request)?.id;
    return id === undefined ? undefined : createHmac("sha256", key).update(id).digest();
  };
  return {
    cookie: cookie.name,
    /**
     * Resolves once this instance has checked if the browser's session was ended at another instance. Returns undefined
     * if no check is needed, because the result is known or there is no session.
     */
    look(request: WithHeaders): Promise<void> | undefined {
      const session = request.headers.has("cookie") ? cookie.read(request) : undefined;
      return session && ended.look(session.id);
    },
    /**
     * Ends the browser's session at all instances, so that a copy of its cookie is useless too. Returns the
     * `Set-Cookie` value that clears the cookie. Throws what the vault throws.
     */
    async signOut(request: Request): Promise<string> {
      const session = cookie.read(request);
      if (session !== undefined) await ended.end(session.id);
      return cookie.cleared;
    },
    /** True if this browser may see the console: it is signed in, or the console needs no token. */
    admits: (request: WithHeaders): boolean => !authentication.guardsConsole || readSession(request) !== undefined,
    /** Returns the API token that this browser signed in with, with its present scopes; undefined without a session. */
    tokenOf: (request: WithHeaders): ApiToken | undefined => readSession(request)?.token,
    /**
     * Returns a CSRF token for this browser's forms, a different one each time (BREACH). Undefined without a session,
     * unless the console needs no token, only this machine can reach the service, and no proxy is in between.
     */
    formToken(request: Request): string | undefined {
      const mac = macFor(request);
      if (mac === undefined) return undefined;
      const mask = randomBytes(mac.length);
      return Buffer.concat([mask, xor(mac, mask)]).toString("base64url");
    },
    /** True if this service gave the CSRF token to this browser. The comparison takes constant time. */
    isFormToken(request: Request, given: string): boolean {
      const mac = macFor(request);
      const bytes = Buffer.from(given, "base64url");
      if (mac === undefined || bytes.length !== 2 * mac.length) return false;
      return timingSafeEqual(mac, xor(bytes.subarray(mac.length), bytes.subarray(0, mac.length)));
    },
    /**
     * Signs the browser in with a token, which may have spaces around it, and returns the `Set-Cookie` value; undefined
     * for a wrong token. Throws 401 for an expired token, 403 for one that may not read.
     */
    signIn(given: string): string | undefined {
      const token = authentication.identify(given.trim());
      if (token === undefined) return undefined;
      authentication.check(token, SCOPE);
      const { name, sha256 } = token;
      return cookie.give({ token: { name, sha256 }, id: randomUUID() });
    },
  };
}

/** Time in ms after which an instance checks again if a session was ended at another instance. */
export const LOOK_AGAIN_MS = 2_000;

/**
 * Maximum number of sessions whose last check an instance remembers, at 100 bytes each. With more, it forgets all
 * checks, and makes them again.
 */
const REMEMBERED_MAX = 10_000;

/**
 * Creates the list of sessions ended by signing out, which all instances share in the database until they would have
 * expired. While it cannot be reached, an instance uses what it knew last.
 */
function createEndedSessions(claims: Claims, lifetimeMs: number, clock: Clock) {
  let looked = new Map<string, { readonly at: number; readonly isEnded: boolean }>();
  const remember = (id: string, isEnded: boolean): void => {
    if (looked.size >= REMEMBERED_MAX) looked = new Map();
    looked.set(id, { at: clock(), isEnded });
  };
  return {
    isEnded: (id: string): boolean => looked.get(id)?.isEnded === true,
    /**
     * Resolves once this instance knows if the session was ended at any instance. Returns undefined if it knows
     * already.
     */
    look(id: string): Promise<void> | undefined {
      const known = looked.get(id);
      if (known !== undefined && (known.isEnded || clock() - known.at < LOOK_AGAIN_MS)) return undefined;
      return claims.isClaimed(claimName(id), clock()).then(
        (isEnded) => remember(id, isEnded),
        () => {},
      );
    },
    /**
     * Ends the session at all instances. Throws what the vault throws; the session has then ended at this instance
     * only.
     */
    async end(id: string): Promise<void> {
      remember(id, true);
      const now = clock();
      await claims.claim(claimName(id), now + lifetimeMs, now);
    },
  };
}

function claimName(id: string): string {
  return `ended-session/${id}`;
}

function xor(one: Uint8Array, other: Uint8Array): Uint8Array {
  return one.map((byte, at) => byte ^ (other[at] ?? 0));
}

/**
 * True if a header shows that a proxy passed the request on. A proxy on this machine that is not configured may pass on
 * requests from any machine.
 */
function cameByProxy({ headers }: Request): boolean {
  return ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"].some((name) => headers.has(name));
}

interface Session {
  readonly token: TokenIdentity;
  /** Random id of the session, so that each session's forms have a different CSRF token. */
  readonly id: string;
}
