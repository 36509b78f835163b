import { LeaseLost } from "eventstore-lite";
import { isoTime } from "../platform/clock.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent, findLast, type PartDeps } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { type HeldLease, ROLES } from "../log/lease.ts";
import { SocialError } from "../networks/network.ts";
import { OAuthError, type OAuth, type TokenPair } from "./oauth.ts";
import type { Secrets } from "../vault/vault.ts";

export interface RefreshDeps extends Pick<PartDeps, "eventLog" | "projector" | "clock" | "sleep" | "announce"> {
  readonly pairs: StoredTokens;
  readonly oauth: OAuth;
}

/**
 * How long the lease must still last: longer than a request takes to reach the network. Otherwise it could arrive after
 * another instance took the lease.
 */
const BEGIN_MS_MAX = 5_000;

/**
 * Replaces the pair with the access token `stale` (undefined: none) and returns the new one; undefined if the grant is
 * dead. Throws SocialError if the network is unavailable and the old token expired, LeaseLost if another may hold
 * `lease`.
 */
export async function refreshPair(deps: RefreshDeps, stale: string | undefined, lease: HeldLease) {
  const { pairs } = deps;
  const pair = await pairs.read();
  // Another process was first: its pair counts.
  if (pair?.accessToken !== stale) return pair?.accessToken;
  // Another process may also have found the grant dead, or unlinked the account.
  await deps.projector.until((await deps.eventLog.store.head()).position);
  if (!deps.projector.state("account").authorized) return undefined;
  if (pair === undefined) return await declareDead(deps, "its tokens are no longer in the vault", lease);
  if (pair.refreshToken === undefined) return await declareDead(deps, "no refresh token was granted", lease);
  const isOurs = (): boolean => lease.lasts(BEGIN_MS_MAX);
  if (!isOurs() || !(await pairs.begin(pair)) || !isOurs()) {
    const kept = await pairs.read();
    // The account was authorized again meanwhile.
    if (kept?.accessToken !== stale) return kept?.accessToken;
    // After a standstill, another instance may be using the refresh token, which works only once.
    throw new LeaseLost(ROLES.tokens);
  }
  try {
    return await keep(deps, pair, await deps.oauth.refresh(pair.refreshToken));
  } catch (fault) {
    if (!(fault instanceof OAuthError)) throw fault;
    const kept = await pairs.read();
    if (kept?.accessToken !== stale) return kept?.accessToken;
    return fault.kind === "rejected"
      ? await declareDead(deps, `${fault.message}${pair.begun ? LOST_BEFORE : ""}`, lease)
      : await goOnWith(deps, pair, fault);
  }
}

const LOST_BEFORE = "; the answer to an earlier refresh was lost before it could be stored";

/** Stores the new pair before it is used, because the old refresh token is used up. */
async function keep(deps: RefreshDeps, old: StoredTokenPair, renewed: TokenPair): Promise<string | undefined> {
  const next = { ...renewed, refreshToken: renewed.refreshToken ?? old.refreshToken, begun: false };
  if (!(await replaceSoon(deps, old.accessToken, next))) {
    const kept = await deps.pairs.read();
    // While this process stood still, the account was unlinked, or another one linked. If the stored token is ours, an
    // earlier try stored it, but its answer was lost.
    if (kept?.accessToken !== next.accessToken) return kept?.accessToken;
  }
  const data = { user_id: userId(deps), expires_at: isoTime(next.expiresAt) };
  await recordRefresh(deps, { type: "TokenRefreshed", data });
  return next.accessToken;
}

/**
 * Storing is retried for longer than a database takes to come back: without the new pair the operator must authorize
 * again.
 */
const STORE_TRIES_MAX = 120;
const STORE_RETRY_MS = 500;

async function replaceSoon(
  { pairs, sleep }: RefreshDeps,
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
 * Returns the old token while it lives, after a refresh that failed for now; the next caller tries again. The pair
 * stays marked as begun if the network may have refreshed it, since the refresh token is used up then.
 */
async function goOnWith(deps: RefreshDeps, pair: StoredTokenPair, fault: OAuthError): Promise<string> {
  if (!fault.isUnsettled) await deps.pairs.replace(pair.accessToken, pair);
  const data = { user_id: userId(deps), reason: fault.message, dead: false };
  await recordRefresh(deps, { type: "TokenRefreshFailed", data });
  if (pair.expiresAt > deps.clock()) return pair.accessToken;
  throw new SocialError("unavailable", `the access token is stale, and there is no new one: ${fault.message}`);
}

/**
 * Announces before recording: after a crash between the two, the grant is found dead again, and the key prevents a
 * second announcement. The lease fences the record, so it never counts against a newer authorization.
 */
async function declareDead(deps: RefreshDeps, reason: string, lease: HeldLease): Promise<undefined> {
  // The position of the last authorization names the grant.
  const key = `grant/${(await findLast(deps.eventLog.store, "AccountAuthorized"))?.position ?? 0}`;
  await deps.announce("the X account is no longer authorized: open /social/auth again", key);
  await recordRefresh(deps, { type: "TokenRefreshFailed", data: { user_id: userId(deps), reason, dead: true } }, lease);
}

async function recordRefresh(deps: RefreshDeps, newEvent: NewEvent, lease?: HeldLease): Promise<void> {
  const conditions = lease === undefined ? {} : { lease };
  await record(deps, STREAMS.account, [newEvent], { metadata: SERVICE_METADATA, ...conditions });
}

function userId({ projector }: RefreshDeps): string {
  return projector.state("account").user?.id ?? "";
}

const SECRET = "x-tokens";

export interface StoredTokenPair extends TokenPair {
  /**
   * True if a refresh was begun and its answer is not stored: the refresh token may be used up, unless the answer still
   * comes.
   */
  readonly begun: boolean;
  /** Grows with each change. */
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
  /** Changes the pair with the access token `stale`, retrying while others write. False if another pair is stored. */
  const changeIf = async (stale: string | undefined, change: (version: number) => Promise<boolean>) => {
    for (;;) {
      const kept = await read();
      if (kept?.accessToken !== stale) return false;
      if (kept === undefined || (await change(kept.version))) return true;
    }
  };

  return {
    read,
    /** Stores a pair in place of any other. */
    async put(pair: TokenPair): Promise<void> {
      for (;;) if (await write(pair, false, (await read())?.version ?? 0)) return;
    },
    /** Marks the pair before its refresh token is used. False if it changed since it was read. */
    async begin(pair: StoredTokenPair): Promise<boolean> {
      // Versions start over with another account, so the version alone proves nothing.
      const isSame = (await read())?.accessToken === pair.accessToken;
      return isSame && (await write(pair, true, pair.version));
    },
    /**
     * Stores a pair in place of the one with the access token `stale`. False if that one is gone; nothing is stored
     * then.
     */
    replace: (stale: string, pair: TokenPair & { readonly begun: boolean }): Promise<boolean> =>
      changeIf(stale, (version) => write(pair, pair.begun, version)),
    /** Deletes the pair with the access token `stale`. False if another pair is stored; nothing is deleted then. */
    drop: (stale: string | undefined): Promise<boolean> => changeIf(stale, (version) => vault.delete(SECRET, version)),
  };
}
