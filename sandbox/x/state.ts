import type { SandboxClock } from "../clock.ts";
import { createWindows } from "../rate-limits.ts";
import { createRecorded } from "../record-received.ts";
import { createActivity } from "./activity-state.ts";
import { CAST, exists, type Person } from "./people.ts";
import { firstPosts } from "./invented-posts.ts";

export interface DirectMessage {
  readonly id: string;
  readonly sender_id: string;
  readonly recipient_id: string;
  readonly text: string;
  /** Time when X accepted the message, ms since the epoch. */
  readonly created_at: number;
}

export interface Grant {
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Id of the authorization from which the token comes. All its tokens share this id. */
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

/** Registration of the app with X. */
export interface XApp {
  /** True if the app is a public OAuth client, which has no secret. */
  readonly publicClient?: boolean;
  readonly clientSecret?: string;
  /**
   * Format of id and secret in the Basic header that the token endpoint expects: raw, as X documents it, or
   * form-encoded (RFC 6749).
   */
  readonly basic?: "raw" | "form";
  /** Callback addresses of the app, compared exactly; default: `/social/callback` on loopback at any port. */
  readonly redirectUris?: readonly string[];
}

/** X's documented limits: https://docs.x.com/x-api/fundamentals/rate-limits */
const DOCUMENTED_LIMITS = {
  /** Maximum number of messages per 15 minutes. Such a limit of 99 was seen at the real X. */
  dmLimit: 15,
  /** Maximum number of messages per 24 hours. */
  dmDayLimit: 1_440,
  /** Maximum number of reads of conversations per 15 minutes. */
  dmReadLimit: 15,
  /** True if answers have the x-rate-limit headers, which answers of the real X sometimes lack. */
  rateHeaders: true,
  /** Time for which a new message does not yet appear in conversations, in ms. */
  lateCommitMs: 0,
  /** Time between two keep-alives of the stream of signals, ms. An idle stream answers with the first one. */
  keepAliveMs: 20_000,
  /** Time for which a connection to the stream still counts after the client has closed it, ms. */
  ghostMs: 0,
  /** Maximum number of subscriptions to signals. */
  subscriptions: 1_500,
  /** Form of the answer to a new subscription. X documents three. */
  createAnswer: "spec" as "spec" | "list" | "bare",
  /** True if the app can subscribe to `oauth.revoke`, which X's guide has and X's specification lacks. */
  offersRevoke: true,
};

export type XLimits = typeof DOCUMENTED_LIMITS;

/** Creates the state of X: people, messages, posts, tokens and limits. */
export function createXState(
  clock: SandboxClock,
  limits: Partial<XLimits>,
  app: XApp,
  damage: () => string | undefined,
) {
  return {
    clock,
    clientId: "sandbox-client",
    // The secret contains characters that percent-encoding changes, as real secrets do.
    clientSecret: app.clientSecret ?? "sandbox-secret_with-marks",
    app,
    /** The app's own token, as X's developer console shows it. */
    appBearer: "AAAAAAAAAAAAAAAAAAAAAsandbox%2Fapp%3Dbearer",
    activity: createActivity(damage),
    limits: { ...DOCUMENTED_LIMITS, ...limits },
    people: new Map(CAST.map((person) => [person.id, person])),
    /** Messages in both directions, oldest first. */
    messages: createRecorded<DirectMessage>(),
    /** Posts of all people, oldest first. */
    posts: firstPosts(CAST, clock.now()),
    /**
     * Number of items that X would charge for: accepted messages, and each entry in an answer, even if an earlier
     * answer had it.
     */
    billed: { sends: 0, users: 0, followers: 0, posts: 0, messages: 0 },
    /** Id of a recipient -> number of messages that X accepted to them. It is complete, unlike `messages`. */
    accepted: new Map<string, number>(),
    codes: new Map<string, Code>(),
    access: new Map<string, Grant>(),
    refresh: new Map<string, Grant & { used: boolean }>(),
    /** Refresh token -> number of its uses. A second use is a defect of the service. */
    refreshUses: new Map<string, number>(),
    revokedFamilies: new Set<string>(),
    grants: createRecorded<TokenGrant>(),
    windows: createWindows(),
  };
}

export type XState = ReturnType<typeof createXState>;

/** Adds to the items that X would charge for. `followers` are those of the account that asks. */
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

/** Returns the existing people among `ids`, each once, in the order of `ids`. */
export function findAll(state: XState, ids: readonly string[]): Person[] {
  return [...new Set(ids)].flatMap((id) => findById(state, id) ?? []);
}

/** Returns all existing people except those who can authorize the app. */
export function others(state: XState): Person[] {
  return [...state.people.values()].filter((person) => exists(person) && person.can_authorize !== true);
}
