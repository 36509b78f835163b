import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import { createWindows, type Windows } from "../window.ts";
import { createBilled, type Billed } from "./billing.ts";
import { CAST, exists, type Person } from "./people.ts";
import { firstPosts, type Post } from "./posts.ts";

export interface DirectMessage {
  readonly id: string;
  readonly sender_id: string;
  readonly recipient_id: string;
  readonly text: string;
  /** ms since the epoch. */
  readonly created_at: number;
  /** When look-ups show it: networks commit late. */
  readonly visible_at: number;
}

export interface Grant {
  readonly userId: string;
  readonly scopes: readonly string[];
  /** All tokens that came from one authorization. */
  readonly family: string;
  readonly expiresAt: number;
}

export interface Code {
  readonly userId: string;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  readonly challenge: string;
  readonly expiresAt: number;
}

export interface TokenGrant {
  readonly grant_type: "authorization_code" | "refresh_token";
  readonly user_id: string;
  readonly at: number;
}

export interface XLimits {
  /** Messages in 15 minutes (X documents 15; 99 was seen live). */
  dmLimit: number;
  /** Messages in 24 hours. */
  dmDayLimit: number;
  /** Reads of conversations in 15 minutes. */
  dmReadLimit: number;
  /** Whether answers carry the x-rate-limit headers: sometimes they are missing. */
  rateHeaders: boolean;
  /** How long an accepted message stays out of look-ups. */
  lateCommitMs: number;
}

/** How the app is registered with X. */
export interface XApp {
  /** A public client has no secret. */
  readonly publicClient?: boolean;
  readonly clientSecret?: string;
  /** How the token endpoint reads id and secret in Basic: as they are, as X documents it, or form-encoded (RFC 6749). */
  readonly basic?: "raw" | "form";
  /** The callbacks, compared exactly; absent: `/social/callback` of anything on loopback, whatever its port. */
  readonly redirectUris?: readonly string[];
}

/** X as the sandbox keeps it. */
export interface XState {
  readonly clock: SandboxClock;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly app: XApp;
  readonly limits: XLimits;
  readonly people: Map<string, Person>;
  /** All messages, both ways. */
  readonly messages: Arrivals<DirectMessage>;
  /** Oldest first, like the messages. */
  readonly posts: Arrivals<Post>;
  readonly billed: Billed;
  /** Accepted messages by recipient, complete. */
  readonly accepted: Map<string, number>;
  readonly codes: Map<string, Code>;
  readonly access: Map<string, Grant>;
  readonly refresh: Map<string, Grant & { used: boolean }>;
  /** Refreshes asked with each token: a second one is a defect of the caller. */
  readonly refreshUses: Map<string, number>;
  readonly revokedFamilies: Set<string>;
  readonly grants: Arrivals<TokenGrant>;
  readonly windows: Windows;
}

/** X's documented limits: https://docs.x.com/x-api/fundamentals/rate-limits */
const DOCUMENTED_LIMITS: XLimits = {
  dmLimit: 15,
  dmDayLimit: 1_440,
  dmReadLimit: 15,
  rateHeaders: true,
  lateCommitMs: 0,
};

export function createXState(clock: SandboxClock, limits: Partial<XLimits>, app: XApp): XState {
  return {
    clock,
    clientId: "sandbox-client",
    // Real secrets contain characters that percent-encoding would change.
    clientSecret: app.clientSecret ?? "sandbox-secret_with-marks",
    app,
    limits: { ...DOCUMENTED_LIMITS, ...limits },
    people: new Map(CAST.map((person) => [person.id, person])),
    messages: createArrivals(TEXTS_KEPT),
    posts: firstPosts(CAST, clock.now()),
    billed: createBilled(),
    accepted: new Map(),
    codes: new Map(),
    access: new Map(),
    refresh: new Map(),
    refreshUses: new Map(),
    revokedFamilies: new Set(),
    grants: createArrivals(TEXTS_KEPT),
    windows: createWindows(),
  };
}

export function findById(state: XState, id: string): Person | undefined {
  const person = state.people.get(id);
  return exists(person) ? person : undefined;
}

export function findByUsername(state: XState, username: string): Person | undefined {
  for (const person of state.people.values()) {
    if (exists(person) && person.username.toLowerCase() === username.toLowerCase()) return person;
  }
  return undefined;
}

/** Everybody but the account itself. */
export function others(state: XState): Person[] {
  return [...state.people.values()].filter((person) => exists(person) && person.can_authorize !== true);
}
