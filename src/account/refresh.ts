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

/** Longer than a request takes to reach the network: it must not arrive once another instance has the lease. */
const BEGIN_MS_MAX = 5_000;

/**
 * Replaces the pair with the access token `stale` (undefined: there was none) and answers the new access token;
 * undefined when the grant is dead. Throws a SocialError when the network cannot be asked and the old token no longer
 * works, and LeaseLost when the tokens' lease, under which it runs, may have passed to another.
 */
export async function refreshPair(deps: RefreshDeps, stale: string | undefined, lease: HeldLease) {
  const { pairs } = deps;
  const pair = await pairs.read();
  // Another process was first: its pair is the one that counts.
  if (pair?.accessToken !== stale) return pair?.accessToken;
  // Or it found the grant dead, or unlinked the account.
  await deps.projector.until((await deps.eventLog.store.head()).position);
  if (!deps.projector.state("account").authorized) return undefined;
  if (pair === undefined) return await declareDead(deps, "its tokens are no longer in the vault", lease);
  if (pair.refreshToken === undefined) return await declareDead(deps, "no refresh token was granted", lease);
  const isOurs = (): boolean => lease.lasts(BEGIN_MS_MAX);
  if (!isOurs() || !(await pairs.begin(pair)) || !isOurs()) {
    const kept = await pairs.read();
    // The account was authorized again meanwhile.
    if (kept?.accessToken !== stale) return kept?.accessToken;
    // After a standstill another instance may be using the refresh token, which works once.
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

/** Stores the new pair before it is used: the old refresh token is used up. */
async function keep(deps: RefreshDeps, old: StoredTokenPair, renewed: TokenPair): Promise<string | undefined> {
  const next = { ...renewed, refreshToken: renewed.refreshToken ?? old.refreshToken, begun: false };
  if (!(await replaceSoon(deps, old.accessToken, next))) {
    const kept = await deps.pairs.read();
    // Another account, or none, while this process stood still. Else it was stored by a try that was not answered.
    if (kept?.accessToken !== next.accessToken) return kept?.accessToken;
  }
  const data = { user_id: userId(deps), expires_at: isoTime(next.expiresAt) };
  await recordRefresh(deps, { type: "TokenRefreshed", data });
  return next.accessToken;
}

/** Without the new pair the operator has to authorize the account again: longer than a database takes to come back. */
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
 * The network could not be asked: the old token is used while it lives, and the next caller asks again. The mark of a
 * refresh that was begun stays where the network may have made it, since the refresh token is used up then.
 */
async function goOnWith(deps: RefreshDeps, pair: StoredTokenPair, fault: OAuthError): Promise<string> {
  if (!fault.isUnsettled) await deps.pairs.replace(pair.accessToken, pair);
  const data = { user_id: userId(deps), reason: fault.message, dead: false };
  await recordRefresh(deps, { type: "TokenRefreshFailed", data });
  if (pair.expiresAt > deps.clock()) return pair.accessToken;
  throw new SocialError("unavailable", `the access token is stale, and there is no new one: ${fault.message}`);
}

/**
 * It is announced to the operator first: after a crash in between the grant is found dead again, and the key keeps it from being
 * announced twice. Fenced, so that it never counts against an authorization that came meanwhile.
 */
async function declareDead(deps: RefreshDeps, reason: string, lease: HeldLease): Promise<undefined> {
  // The position at which the account was last authorized names the grant.
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
  /** A refresh with it was begun and its answer is not stored: unless it still comes, the refresh token may be used up. */
  readonly begun: boolean;
  /** Grows with each change. */
  readonly version: number;
}

type StoredTokens = ReturnType<typeof createStoredTokens>;

/** The account's tokens in the vault. What is stored is durable, and all instances see it. */
export function createStoredTokens(vault: Secrets) {
  const read = async (): Promise<StoredTokenPair | undefined> => {
    const kept = await vault.get(SECRET);
    if (kept === undefined) return undefined;
    const pair = JSON.parse(kept.value) as TokenPair & { readonly begun?: boolean };
    return { ...pair, begun: pair.begun ?? false, version: kept.version };
  };
  const write = ({ accessToken, refreshToken, expiresAt, scopes }: TokenPair, begun: boolean, expected: number) =>
    vault.put(SECRET, JSON.stringify({ accessToken, refreshToken, expiresAt, scopes, begun }), expected);
  /** Changes the pair with the access token `stale`, also while others write. False: another one is there. */
  const changeIf = async (stale: string | undefined, change: (version: number) => Promise<boolean>) => {
    for (;;) {
      const kept = await read();
      if (kept?.accessToken !== stale) return false;
      if (kept === undefined || (await change(kept.version))) return true;
    }
  };

  return {
    read,
    /** Stores a pair in place of whatever there is. */
    async put(pair: TokenPair): Promise<void> {
      for (;;) if (await write(pair, false, (await read())?.version ?? 0)) return;
    },
    /** Marks the pair before its refresh token is used. False: it changed since it was read. */
    async begin(pair: StoredTokenPair): Promise<boolean> {
      // Versions start over with another account.
      const isSame = (await read())?.accessToken === pair.accessToken;
      return isSame && (await write(pair, true, pair.version));
    },
    /** Stores a pair in place of the one with the access token `stale`. False: that one is gone, nothing was stored. */
    replace: (stale: string, pair: TokenPair & { readonly begun: boolean }): Promise<boolean> =>
      changeIf(stale, (version) => write(pair, pair.begun, version)),
    /** Leaves none. False: there is another than the one with the access token `stale`, and nothing was deleted. */
    drop: (stale: string | undefined): Promise<boolean> => changeIf(stale, (version) => vault.delete(SECRET, version)),
  };
}
