import type { SandboxClock } from "../clock.ts";
import { createWindows } from "../rate-limits.ts";
import { createRecorded } from "../recorded.ts";
import { CAST, exists, type Person } from "./people.ts";
import { firstPosts } from "./posts.ts";

export interface DirectMessage {
  readonly id: string;
  readonly sender_id: string;
  readonly recipient_id: string;
  readonly text: string;
  /** ms since the epoch. */
  readonly created_at: number;
}

export interface Grant {
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Identifies all tokens of one authorization. */
  readonly family: string;
  readonly expiresAt: number;
}

interface Code extends Omit<Grant, "family"> {
  readonly redirectUri: string;
  readonly challenge: string;
}

export interface TokenGrant {
  readonly grant_type: "authorization_code" | "refresh_token";
  readonly user_id: string;
  readonly at: number;
}

/** The app's registration with X. */
export interface XApp {
  /** True for a public client, which has no secret. */
  readonly publicClient?: boolean;
  readonly clientSecret?: string;
  /**
   * Format in which the token endpoint expects id and secret in Basic: raw, as X documents it, or form-encoded (RFC
   * 6749).
   */
  readonly basic?: "raw" | "form";
  /** The callbacks, compared exactly; default: `/social/callback` on loopback at any port. */
  readonly redirectUris?: readonly string[];
}

/** X's documented limits: https://docs.x.com/x-api/fundamentals/rate-limits */
const DOCUMENTED_LIMITS = {
  /** Messages per 15 minutes (99 was seen live). */
  dmLimit: 15,
  /** Messages per 24 hours. */
  dmDayLimit: 1_440,
  /** Reads of conversations per 15 minutes. */
  dmReadLimit: 15,
  /** True if answers carry the x-rate-limit headers, which real answers sometimes lack. */
  rateHeaders: true,
  /** Time for which an accepted message does not appear in look-ups. */
  lateCommitMs: 0,
};

export type XLimits = typeof DOCUMENTED_LIMITS;

/** The sandbox's state of X. */
export function createXState(clock: SandboxClock, limits: Partial<XLimits>, app: XApp) {
  return {
    clock,
    clientId: "sandbox-client",
    // Contains characters that percent-encoding changes, like real secrets.
    clientSecret: app.clientSecret ?? "sandbox-secret_with-marks",
    app,
    limits: { ...DOCUMENTED_LIMITS, ...limits },
    people: new Map(CAST.map((person) => [person.id, person])),
    /** All messages in both directions. */
    messages: createRecorded<DirectMessage>(),
    /** Oldest first, like the messages. */
    posts: firstPosts(CAST, clock.now()),
    /** Items that X would charge for: accepted messages, and each returned entry, even if it was returned before. */
    billed: { sends: 0, users: 0, followers: 0, posts: 0, messages: 0 },
    /** Number of accepted messages by recipient, complete. */
    accepted: new Map<string, number>(),
    codes: new Map<string, Code>(),
    access: new Map<string, Grant>(),
    refresh: new Map<string, Grant & { used: boolean }>(),
    /** Number of refreshes with each token; a second one is a defect of the caller. */
    refreshUses: new Map<string, number>(),
    revokedFamilies: new Set<string>(),
    grants: createRecorded<TokenGrant>(),
    windows: createWindows(),
  };
}

export type XState = ReturnType<typeof createXState>;

/** Adds to the billed items; `followers` are those of the asking account. */
export function bill({ billed }: XState, more: Partial<XState["billed"]>): void {
  for (const name of Object.keys(billed) as (keyof typeof billed)[]) billed[name] += more[name] ?? 0;
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

/** The existing people among `ids`, each once, in the order of `ids`. */
export function findAll(state: XState, ids: readonly string[]): Person[] {
  return [...new Set(ids)].flatMap((id) => findById(state, id) ?? []);
}

/** All people except accounts that can authorize. */
export function others(state: XState): Person[] {
  return [...state.people.values()].filter((person) => exists(person) && person.can_authorize !== true);
}
