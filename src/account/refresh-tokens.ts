import { LeaseLost } from "eventstore-lite";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent, findLast, type StateContext } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { type HeldLease, ROLES } from "../log/leases-and-roles.ts";
import { SocialError } from "../networks/network.ts";
import { OAuthError, type OAuth, type TokenPair } from "./oauth.ts";
import type { Secrets } from "../vault/vault.ts";

/** Parts that a refresh uses: the stored tokens of the linked account, and the OAuth client. */
export interface RefreshContext extends StateContext {
  readonly pairs: StoredTokens;
  readonly oauth: OAuth;
}

/**
 * Remaining time of the lease, in ms, that a refresh needs to begin. Its request must reach the network before another
 * instance can take the lease.
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
  // Another process has already refreshed the tokens, so its access token is used.
  if (pair?.accessToken !== stale) return pair?.accessToken;
  // Another process may have recorded that the grant is dead, or unlinked the account, so the projections first read
  // the log to its end.
  await context.projector.until((await context.eventLog.store.head()).position);
  if (!context.projector.state("account").authorized) return undefined;
  if (pair === undefined) return await declareDead(context, "its tokens are no longer in the vault", lease);
  if (pair.refreshToken === undefined) return await declareDead(context, "no refresh token was granted", lease);
  const isOurs = (): boolean => lease.lasts(BEGIN_MS_MAX);
  if (!isOurs() || !(await pairs.begin(pair)) || !isOurs()) {
    const kept = await pairs.read();
    // Meanwhile the account was authorized again, which stored newer tokens.
    if (kept?.accessToken !== stale) return kept?.accessToken;
    // If this process was paused, another instance may have begun to use the refresh token, which works only once.
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
    // The vault no longer held the old pair. If it holds the refreshed pair, an earlier attempt stored that pair and
    // only the answer was lost. Otherwise the account was unlinked or authorized again while this process was paused.
    if (kept?.accessToken !== next.accessToken) return kept?.accessToken;
  }
  const data = { user_id: userId(context), expires_at: isoTime(next.expiresAt) };
  await recordRefresh(context, { type: "TokenRefreshed", data });
  return next.accessToken;
}

/**
 * Maximum number of attempts to store a refreshed token pair. The attempts last longer than a database restart, because
 * without the new pair the operator would have to authorize again.
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
 * Returns the old access token, if it has not expired, after a refresh that failed; the next caller refreshes again.
 * The stored pair stays marked as `begun` if the network may have used up the refresh token.
 */
async function goOnWith(context: RefreshContext, pair: StoredTokenPair, fault: OAuthError): Promise<string> {
  if (!fault.isUnsettled) await context.pairs.replace(pair.accessToken, pair);
  const data = { user_id: userId(context), reason: fault.message, dead: false };
  await recordRefresh(context, { type: "TokenRefreshFailed", data });
  if (pair.expiresAt > context.clock()) return pair.accessToken;
  throw new SocialError("unavailable", `the access token is stale, and there is no new one: ${fault.message}`);
}

/**
 * Announces, then records, that the grant has ended. After a crash between the two, the next refresh does both, and
 * `key` prevents a second announcement. Nothing is recorded without the lease, because the account may be authorized
 * again.
 */
async function declareDead(context: RefreshContext, reason: string, lease: HeldLease): Promise<undefined> {
  // The position of the last authorization identifies the grant.
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
  /** True if a refresh of the pair was begun and no answer is stored, so that the refresh token may be used up. */
  readonly begun: boolean;
  /** Version of the token pair in the vault, which grows with each change. */
  readonly version: number;
}

type StoredTokens = ReturnType<typeof createStoredTokens>;

/** Gives access to the account's tokens in the vault, which are durable and shared by all instances. */
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
   * Changes or deletes the stored token pair if its access token is `stale`, and tries again if another process writes
   * meanwhile. Returns false if another pair is stored.
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
     * Marks a token pair as `begun`, before its refresh token is used. Returns false if the stored pair has changed
     * since this one was read.
     */
    async begin(pair: StoredTokenPair): Promise<boolean> {
      // After another account is linked, versions count from the start again, so the access token is compared too.
      const isSame = (await read())?.accessToken === pair.accessToken;
      return isSame && (await write(pair, true, pair.version));
    },
    /**
     * Stores a token pair in place of the one with the access token `stale`. Returns false and stores nothing if
     * another pair is stored.
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
