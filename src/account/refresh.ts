import { LeaseLost } from "eventstore-lite";
import { isoTime } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent, findLast, type StateContext } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { type HeldLease, ROLES } from "../log/lease.ts";
import { SocialError } from "../networks/network.ts";
import { OAuthError, type OAuth, type TokenPair } from "./oauth.ts";
import type { Secrets } from "../vault/vault.ts";

/** The tokens of the linked account, and the OAuth client that refreshes them. */
export interface RefreshContext extends StateContext {
  readonly pairs: StoredTokens;
  readonly oauth: OAuth;
}

/**
 * How long the lease must still last when a refresh begins: longer than its request takes to reach the network.
 * Otherwise it could arrive after another instance took the lease.
 */
const BEGIN_MS_MAX = 5_000;

/**
 * Refreshes the token pair whose access token is `stale` and returns the new access token; undefined if the grant is
 * dead. Throws SocialError if the network is unavailable and the old token expired, LeaseLost if another may hold
 * `lease`.
 */
export async function refreshPair(context: RefreshContext, stale: string | undefined, lease: HeldLease) {
  const { pairs } = context;
  const pair = await pairs.read();
  // Another process was first: its pair counts.
  if (pair?.accessToken !== stale) return pair?.accessToken;
  // Another process may also have found the grant dead, or unlinked the account.
  await context.projector.until((await context.eventLog.store.head()).position);
  if (!context.projector.state("account").authorized) return undefined;
  if (pair === undefined) return await declareDead(context, "its tokens are no longer in the vault", lease);
  if (pair.refreshToken === undefined) return await declareDead(context, "no refresh token was granted", lease);
  const isOurs = (): boolean => lease.lasts(BEGIN_MS_MAX);
  if (!isOurs() || !(await pairs.begin(pair)) || !isOurs()) {
    const kept = await pairs.read();
    // The account was authorized again meanwhile.
    if (kept?.accessToken !== stale) return kept?.accessToken;
    // After a standstill, another instance may be using the refresh token, which works only once.
    throw new LeaseLost(ROLES.tokens);
  }
  try {
    return await keep(context, pair, await context.oauth.refresh(pair.refreshToken));
  } catch (fault) {
    if (!(fault instanceof OAuthError)) throw fault;
    const kept = await pairs.read();
    if (kept?.accessToken !== stale) return kept?.accessToken;
    return fault.kind === "rejected"
      ? await declareDead(context, `${fault.message}${pair.begun ? LOST_BEFORE : ""}`, lease)
      : await goOnWith(context, pair, fault);
  }
}

const LOST_BEFORE = "; the answer to an earlier refresh was lost before it could be stored";

/** Stores the refreshed token pair before it is used, because the old refresh token is used up. */
async function keep(context: RefreshContext, old: StoredTokenPair, renewed: TokenPair): Promise<string | undefined> {
  const next = { ...renewed, refreshToken: renewed.refreshToken ?? old.refreshToken, begun: false };
  if (!(await replaceSoon(context, old.accessToken, next))) {
    const kept = await context.pairs.read();
    // While this process stood still, the account was unlinked, or another one linked. If the stored token is ours, an
    // earlier try stored it, but its answer was lost.
    if (kept?.accessToken !== next.accessToken) return kept?.accessToken;
  }
  const data = { user_id: userId(context), expires_at: isoTime(next.expiresAt) };
  await recordRefresh(context, { type: "TokenRefreshed", data });
  return next.accessToken;
}

/**
 * Most attempts to store a refreshed token pair: they last longer than a database takes to come back, because without
 * the new pair the operator must authorize again.
 */
const STORE_TRIES_MAX = 120;
const STORE_RETRY_MS = 500;

async function replaceSoon(
  { pairs, sleep }: RefreshContext,
  stale: string,
  next: TokenPair & { readonly begun: boolean },
): Promise<boolean> {
  const unstopped = new AbortController().signal;
  for (let tried = 1; ; tried++) {
    try {
      return await pairs.replace(stale, next);
    } catch (fault) {
      if (tried === STORE_TRIES_MAX) throw fault;
      await sleep(STORE_RETRY_MS, unstopped);
    }
  }
}

/**
 * Returns the old access token while it lives, after a refresh that failed for now; the next caller tries again. The
 * stored pair stays marked as begun if the network may have used up the refresh token.
 */
async function goOnWith(context: RefreshContext, pair: StoredTokenPair, fault: OAuthError): Promise<string> {
  if (!fault.isUnsettled) await context.pairs.replace(pair.accessToken, pair);
  const data = { user_id: userId(context), reason: fault.message, dead: false };
  await recordRefresh(context, { type: "TokenRefreshFailed", data });
  if (pair.expiresAt > context.clock()) return pair.accessToken;
  throw new SocialError("unavailable", `the access token is stale, and there is no new one: ${fault.message}`);
}

/**
 * Announces and records that the grant is dead, in that order: if a crash comes between, the next refresh does both
 * again, and the key prevents a second announcement. The lease keeps the record from counting against a newer
 * authorization.
 */
async function declareDead(context: RefreshContext, reason: string, lease: HeldLease): Promise<undefined> {
  // The position of the last authorization names the grant.
  const key = `grant/${(await findLast(context.eventLog.store, "AccountAuthorized"))?.position ?? 0}`;
  await context.announce("the X account is no longer authorized: open /social/auth again", key);
  await recordRefresh(
    context,
    { type: "TokenRefreshFailed", data: { user_id: userId(context), reason, dead: true } },
    lease,
  );
}

async function recordRefresh(context: RefreshContext, newEvent: NewEvent, lease?: HeldLease): Promise<void> {
  const conditions = lease === undefined ? {} : { lease };
  await record(context, STREAMS.account, [newEvent], { metadata: SERVICE_METADATA, ...conditions });
}

function userId({ projector }: RefreshContext): string {
  return projector.state("account").user?.id ?? "";
}

const SECRET = "x-tokens";

export interface StoredTokenPair extends TokenPair {
  /**
   * True if a refresh of the pair was begun and its answer is not stored: the refresh token may be used up, unless the
   * answer still comes.
   */
  readonly begun: boolean;
  /** Version of the stored pair, which grows with each change. */
  readonly version: number;
}

type StoredTokens = ReturnType<typeof createStoredTokens>;

/** The account's tokens in the vault, durable and visible to all instances. */
export function createStoredTokens(vault: Secrets) {
  const read = async (): Promise<StoredTokenPair | undefined> => {
    const kept = await vault.get(SECRET);
    if (kept === undefined) return undefined;
    const pair = JSON.parse(kept.value) as TokenPair & { readonly begun?: boolean };
    return { ...pair, begun: pair.begun ?? false, version: kept.version };
  };
  const write = ({ accessToken, refreshToken, expiresAt, scopes }: TokenPair, begun: boolean, expected: number) =>
    vault.put(SECRET, JSON.stringify({ accessToken, refreshToken, expiresAt, scopes, begun }), expected);
  /**
   * Changes the stored token pair if its access token is `stale`, and retries while others write. Returns false if
   * another pair is stored.
   */
  const changeIf = async (stale: string | undefined, change: (version: number) => Promise<boolean>) => {
    for (;;) {
      const kept = await read();
      if (kept?.accessToken !== stale) return false;
      if (kept === undefined || (await change(kept.version))) return true;
    }
  };

  return {
    read,
    /** Stores a token pair in place of any other. */
    async put(pair: TokenPair): Promise<void> {
      for (;;) if (await write(pair, false, (await read())?.version ?? 0)) return;
    },
    /**
     * Marks a token pair as begun before its refresh token is used. Returns false if the stored pair changed since it
     * was read.
     */
    async begin(pair: StoredTokenPair): Promise<boolean> {
      // Versions start over with another account, so the version alone proves nothing.
      const isSame = (await read())?.accessToken === pair.accessToken;
      return isSame && (await write(pair, true, pair.version));
    },
    /**
     * Stores a token pair in place of the one with the access token `stale`. Returns false, and stores nothing, if that
     * one is gone.
     */
    replace: (stale: string, pair: TokenPair & { readonly begun: boolean }): Promise<boolean> =>
      changeIf(stale, (version) => write(pair, pair.begun, version)),
    /**
     * Deletes the token pair with the access token `stale`. Returns false, and deletes nothing, if another pair is
     * stored.
     */
    drop: (stale: string | undefined): Promise<boolean> => changeIf(stale, (version) => vault.delete(SECRET, version)),
  };
}
