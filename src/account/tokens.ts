import type { Logger } from "../log.ts";
import { isoTime, type Clock } from "../clock.ts";
import { STREAMS, OWN_CAUSE, type Cause, type Fact, type Journal } from "../journal.ts";
import { SocialError, type SendDmResult } from "../networks/network.ts";
import type { Projector } from "../projector.ts";
import { OAuthError, type OAuth, type TokenPair } from "./oauth.ts";
import type { Vault } from "./vault.ts";

/** The authorized account's right to call the network. */
export interface Credentials {
  /** Calls with a fresh token; a SocialError `unauthorized` refreshes it once and calls again. */
  use<T>(call: (token: string) => Promise<T>): Promise<T>;
  /** The same for a send, whose failures are answers. */
  send(call: (token: string) => Promise<SendDmResult>): Promise<SendDmResult>;
}

export interface Tokens extends Credentials {
  /** Stores a new pair durably, then appends `facts`. */
  store(pair: TokenPair, facts: readonly Fact[], cause: Cause): Promise<void>;
  /** Runs `work` while no other process touches the tokens. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** The stored pair, to revoke it. */
  peek(): TokenPair | undefined;
  /** Deletes the stored pair. */
  drop(): void;
}

export interface TokensDeps {
  readonly vault: Vault;
  readonly oauth: OAuth;
  readonly journal: Journal;
  readonly projector: Projector;
  readonly clock: Clock;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly holder: string;
  readonly log: Logger;
  readonly announce: (text: string, key: string) => Promise<void>;
}

const SECRET = "x-tokens";
const LEASE = "account-tokens";

/** Longer than the slowest token request, so that the lease outlives it. */
const LEASE_TTL_MS = 60_000;
const LEASE_POLL_MS = 200;

/** A token with less life than this is refreshed before it is used. */
const REFRESH_BELOW_MS = 5 * 60_000;

export function createTokens(deps: TokensDeps): Tokens {
  let refreshing: Promise<string | undefined> | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  const read = (): (TokenPair & { version: number }) | undefined => {
    const kept = deps.vault.get(SECRET);
    return kept === undefined ? undefined : { ...(JSON.parse(kept.value) as TokenPair), version: kept.version };
  };

  const exclusively = <T>(work: () => Promise<T>): Promise<T> => {
    // One after the other here, under a lease between processes.
    const turn = queue.then(() => underLease(deps, work));
    queue = turn.catch(() => {});
    return turn;
  };

  const store: Tokens["store"] = async (pair, facts, cause) => {
    const version = deps.vault.get(SECRET)?.version ?? 0;
    if (!deps.vault.put(SECRET, JSON.stringify(pair), version)) throw new Error("the tokens changed under the lease");
    const appended = await deps.journal.append(STREAMS.account, facts, cause);
    await deps.projector.until(appended.last);
  };

  /** Single flight: everybody who finds the token stale waits for one refresh. The caller's leaving does not stop it. */
  const refresh = (stale: number): Promise<string | undefined> => {
    refreshing ??= exclusively(() => refreshOnce(deps, read, store, stale)).finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  };

  const fresh = async (): Promise<{ token: string; version: number } | undefined> => {
    const pair = read();
    if (pair === undefined || !deps.projector.state("account").authorized) return undefined;
    if (pair.expiresAt - deps.clock() >= REFRESH_BELOW_MS) return { token: pair.accessToken, version: pair.version };
    const token = await refresh(pair.version);
    return token === undefined ? undefined : { token, version: read()?.version ?? 0 };
  };

  return {
    store,
    exclusively,
    peek: read,
    drop: () => deps.vault.delete(SECRET),
    async use(call) {
      const current = await fresh();
      if (current === undefined) throw new SocialError("unauthorized", "no account is authorized");
      try {
        return await call(current.token);
      } catch (fault) {
        if (!(fault instanceof SocialError) || fault.kind !== "unauthorized") throw fault;
        const token = await refresh(current.version);
        if (token === undefined) throw fault;
        return await call(token);
      }
    },
    async send(call) {
      const current = await fresh().catch(asUnreachable);
      if (current === undefined) return { outcome: "unauthorized", rate: undefined };
      if ("outcome" in current) return current;
      const result = await call(current.token);
      if (result.outcome !== "unauthorized") return result;
      const token = await refresh(current.version).catch(asUnreachable);
      if (token === undefined) return result;
      return typeof token === "string" ? await call(token) : token;
    },
  };
}

/** A refresh that could not be made: the message was certainly not sent. */
function asUnreachable(fault: unknown): SendDmResult {
  if (!(fault instanceof SocialError)) throw fault;
  return { outcome: "unreachable", detail: fault.message, rate: undefined };
}

/**
 * Refreshes the pair of version `stale` and answers the new access token; undefined when the grant is dead.
 * Throws a SocialError when the network cannot be asked and the old token no longer works.
 */
async function refreshOnce(
  deps: TokensDeps,
  read: () => (TokenPair & { version: number }) | undefined,
  store: Tokens["store"],
  stale: number,
): Promise<string | undefined> {
  const pair = read();
  if (pair === undefined) return undefined;
  // Another process was first: its pair is the one that counts.
  if (pair.version !== stale) return pair.accessToken;
  // Or it found the grant dead: asking again would tell the operator twice.
  await deps.projector.until((await deps.journal.store.head()).position);
  if (!deps.projector.state("account").authorized) return undefined;
  const user_id = deps.projector.state("account").user?.id ?? "";
  try {
    if (pair.refreshToken === undefined) throw new OAuthError("refused", "no refresh token was granted");
    const renewed = await deps.oauth.refresh(pair.refreshToken);
    const next = { ...renewed, refreshToken: renewed.refreshToken ?? pair.refreshToken };
    const data = { user_id, expires_at: isoTime(next.expiresAt) };
    await store(next, [{ type: "TokenRefreshed", data }], OWN_CAUSE);
    return next.accessToken;
  } catch (fault) {
    if (!(fault instanceof OAuthError)) throw fault;
    const reread = read();
    if (reread !== undefined && reread.version !== stale) return reread.accessToken;
    return await recordFailure(deps, fault, user_id, pair);
  }
}

async function recordFailure(
  deps: TokensDeps,
  fault: OAuthError,
  user_id: string,
  pair: TokenPair,
): Promise<string | undefined> {
  const dead = fault.kind === "refused";
  const data = { user_id, reason: fault.message, dead };
  const appended = await deps.journal.append(STREAMS.account, [{ type: "TokenRefreshFailed", data }], OWN_CAUSE);
  await deps.projector.until(appended.last);
  if (dead) {
    await deps.announce("the X account is no longer authorized: open /social/auth again", `grant/${appended.last}`);
    return undefined;
  }
  if (pair.expiresAt > deps.clock()) return pair.accessToken;
  throw new SocialError("unavailable", "the access token is stale and the network cannot be asked for a new one");
}

async function underLease<T>(deps: TokensDeps, work: () => Promise<T>): Promise<T> {
  const { leases } = deps.journal.store;
  const giveUpAt = deps.clock() + LEASE_TTL_MS;
  const never = new AbortController().signal;
  for (;;) {
    const lease = await leases.acquire(LEASE, { holder: deps.holder, ttlMs: LEASE_TTL_MS });
    if (lease !== undefined) {
      try {
        return await work();
      } finally {
        await leases.release(lease);
      }
    }
    if (deps.clock() > giveUpAt) throw new SocialError("unavailable", "another process holds the tokens");
    await deps.sleep(LEASE_POLL_MS, never);
  }
}
