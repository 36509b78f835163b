import type { SandboxClock } from "../clock.ts";
import { createArrivals, type Arrivals } from "../journal.ts";
import { createWindows, type Windows } from "../window.ts";
import { CAST, type Person } from "./people.ts";

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

/** X as the sandbox keeps it. */
export interface XState {
  readonly clock: SandboxClock;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly limits: XLimits;
  readonly people: Map<string, Person>;
  readonly messages: DirectMessage[];
  /** Accepted messages by recipient, complete. */
  readonly accepted: Map<string, number>;
  readonly codes: Map<string, Code>;
  readonly access: Map<string, Grant>;
  readonly refresh: Map<string, Grant & { used: boolean }>;
  /** Refreshes asked with each token: a second one is a defect of the caller. */
  readonly refreshUses: Map<string, number>;
  readonly revokedFamilies: Set<string>;
  readonly windows: Windows;
  readonly requests: Arrivals<string>;
}

/** X's documented limits: https://docs.x.com/x-api/fundamentals/rate-limits */
export const DOCUMENTED_LIMITS: XLimits = {
  dmLimit: 15,
  dmDayLimit: 1_440,
  dmReadLimit: 15,
  rateHeaders: true,
  lateCommitMs: 0,
};

export function createXState(clock: SandboxClock, limits: Partial<XLimits>): XState {
  return {
    clock,
    clientId: "sandbox-client",
    // Real secrets contain characters that percent-encoding would change.
    clientSecret: "sandbox-secret_with-marks",
    limits: { ...DOCUMENTED_LIMITS, ...limits },
    people: new Map(CAST.map((person) => [person.id, person])),
    messages: [],
    accepted: new Map(),
    codes: new Map(),
    access: new Map(),
    refresh: new Map(),
    refreshUses: new Map(),
    revokedFamilies: new Set(),
    windows: createWindows(),
    requests: createArrivals(),
  };
}

export function findByUsername(state: XState, username: string): Person | undefined {
  for (const person of state.people.values()) {
    if (person.username.toLowerCase() === username.toLowerCase()) return person;
  }
  return undefined;
}
