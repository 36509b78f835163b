import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { hasScope, type ApiToken } from "../../config/tokens.ts";
import type { Clock } from "../../platform/clock.ts";
import { deriveKey } from "../../vault/derive-keys.ts";
import type { Vault } from "../../vault/vault.ts";
import type { Authentication } from "./bearer-tokens.ts";
import { createEncryptedCookie, type CookieSite } from "./encrypted-cookie.ts";

const COOKIE = {
  name: "reachlog_session",
  keyName: "console-session",
  lifetimeSeconds: 12 * 3600,
};

/** Of each page of the console. A token without it opens no session. */
const SCOPE = "read";

export type Sessions = ReturnType<typeof createSessions>;

/**
 * Signs browsers in to the console with a token that is asked for once. A session has the scopes of that token, and ends
 * with it.
 */
export function createSessions(options: {
  readonly masterKey: Uint8Array;
  readonly authentication: Authentication;
  readonly site: CookieSite;
  /** Only this machine can reach the service. */
  readonly isLocal: boolean;
  readonly claims: Pick<Vault, "claim" | "isClaimed">;
  readonly clock: Clock;
}) {
  const { masterKey, authentication, site, isLocal, claims, clock } = options;
  const cookie = createEncryptedCookie<Session>(COOKIE, masterKey, site, clock);
  const ended = createEndedSessions(claims, COOKIE.lifetimeSeconds * 1_000, clock);
  const key = deriveKey(masterKey, "console-form");
  const readSession = (request: Pick<Request, "headers">) => {
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
    /** Resolves once it is known whether the browser's session was ended at another instance; undefined: that is known. */
    look(request: Pick<Request, "headers">): Promise<void> | undefined {
      const session = request.headers.has("cookie") ? cookie.read(request) : undefined;
      return session && ended.look(session.id);
    },
    /**
     * Ends the session at all instances, also for a copy of its cookie; returns the `Set-Cookie` value that clears it. Throws
     * what the vault throws.
     */
    async signOut(request: Request): Promise<string> {
      const session = cookie.read(request);
      if (session !== undefined) await ended.end(session.id);
      return cookie.cleared;
    },
    /** True when this browser may see the console: signed in, or no token is configured at all. */
    admits: (request: Pick<Request, "headers">): boolean =>
      !authentication.guardsConsole || readSession(request) !== undefined,
    /** The token that this browser signed in with, as it is configured now; undefined: there is no session. */
    tokenOf: (request: Pick<Request, "headers">): ApiToken | undefined => readSession(request)?.token,
    /**
     * The CSRF token that proves a form to be one of our pages' to this browser; undefined: this browser may not act.
     * Without any token configured only browsers of this machine may, on a service that no other machine can reach. Another
     * one at each call, so that the length of a compressed page tells nothing of it (BREACH).
     */
    formToken(request: Request): string | undefined {
      const mac = macFor(request);
      if (mac === undefined) return undefined;
      const mask = randomBytes(mac.length);
      return Buffer.concat([mask, xor(mac, mask)]).toString("base64url");
    },
    /** True for a token that this browser was given. Compares in a time that does not depend on it. */
    isFormToken(request: Request, given: string): boolean {
      const mac = macFor(request);
      const bytes = Buffer.from(given, "base64url");
      if (mac === undefined || bytes.length !== 2 * mac.length) return false;
      return timingSafeEqual(mac, xor(bytes.subarray(mac.length), bytes.subarray(0, mac.length)));
    },
    /**
     * The `Set-Cookie` value for a right token, also with the spaces of a paste around it; undefined for a wrong one. Throws 401 for an expired one, 403 for one that
     * may not read.
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

/** How long an instance goes without asking whether a session was ended at another one. */
export const LOOK_AGAIN_MS = 2_000;

/** Sessions that an instance remembers: 100 bytes each. Past that, each one is looked up once more. */
const REMEMBERED_MAX = 10_000;

/**
 * The sessions that were signed out, kept for all instances until they would have expired. While the claims are out of
 * reach, an instance goes by what it knew last.
 */
function createEndedSessions(claims: Pick<Vault, "claim" | "isClaimed">, lifetimeMs: number, clock: Clock) {
  let looked = new Map<string, { readonly at: number; readonly isEnded: boolean }>();
  const remember = (id: string, isEnded: boolean): void => {
    if (looked.size >= REMEMBERED_MAX) looked = new Map();
    looked.set(id, { at: clock(), isEnded });
  };
  return {
    isEnded: (id: string): boolean => looked.get(id)?.isEnded === true,
    /** Resolves once it is known whether the session was ended at any instance; undefined: that is known. */
    look(id: string): Promise<void> | undefined {
      const known = looked.get(id);
      if (known !== undefined && (known.isEnded || clock() - known.at < LOOK_AGAIN_MS)) return undefined;
      return claims.isClaimed(claimName(id), clock()).then(
        (isEnded) => remember(id, isEnded),
        () => {},
      );
    },
    /** Ends the session at all instances. Throws what the vault throws; it has ended here then. */
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

/** True behind a proxy of this machine that is not configured here: its callers come from anywhere. */
function cameByProxy({ headers }: Request): boolean {
  return ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"].some((name) => headers.has(name));
}

interface Session {
  readonly token: Pick<ApiToken, "name" | "sha256">;
  /** Random: each session's forms have a token of their own. */
  readonly id: string;
}
