import { type EventMetadata, type NewEvent, STREAMS, type LogContext, type StateContext } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type SendDmResult } from "../networks/network.ts";
import type { OAuth, TokenPair } from "./oauth.ts";
import { createStoredTokens, type StoredTokenPair, refreshPair } from "./refresh-tokens.ts";
import type { Secrets } from "../vault/vault.ts";
import { LeaseLost } from "eventstore-lite";
import { takeLease, type HeldLease, ROLES } from "../log/leases-and-roles.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";

export type Tokens = ReturnType<typeof createTokens>;

/** Access to the network as the linked account, for reads (`use`) and for sending messages (`send`). */
export interface Credentials {
  readonly use: Tokens["use"];
  readonly send: Tokens["send"];
}

/** Parts that the tokens use: the log, the vault that stores them, and the OAuth client that refreshes them. */
export interface TokensContext extends StateContext {
  readonly vault: Secrets;
  readonly oauth: OAuth;
}

/** Remaining lifetime of an access token, in ms, below which it is refreshed before use. */
const REFRESH_BELOW_MS = 5 * 60_000;

/**
 * Creates access to the linked account's tokens. Disposing it waits for a refresh in progress, because the grant would
 * be lost if the answer were not stored.
 */
export function createTokens(context: TokensContext) {
  const { projector } = context;
  const pairs = createStoredTokens(context.vault);
  const tokenLease = createTokenLease(context);
  let refreshing: Promise<string | undefined> | undefined;

  /** Refreshes the access token. All callers wait for the same refresh, which continues even if a caller gives up. */
  const refresh = (stale: string | undefined): Promise<string | undefined> => {
    refreshing ??= tokenLease
      .run((lease) => refreshPair({ ...context, pairs }, stale, lease))
      .finally(() => {
        refreshing = undefined;
      });
    return refreshing;
  };

  const fresh = async (): Promise<string | undefined> => {
    if (!projector.state("account").authorized) return undefined;
    const pair = await pairs.read();
    if (pair === undefined || refreshing !== undefined) return refresh(pair?.accessToken);
    return isFresh(pair, context.clock()) ? pair.accessToken : refresh(pair.accessToken);
  };

  /**
   * Returns a new access token after the network refused one with a 401; undefined if the grant is dead. Throws a
   * SocialError `unavailable` if the network gives no new one.
   */
  const renewed = async (refused: string): Promise<string | undefined> => {
    const token = await refresh(refused);
    if (token !== refused) return token;
    throw new SocialError("unavailable", "the access token is refused and the network cannot be asked for a new one");
  };

  return {
    /** Stores the token pair of a new authorization durably, then appends its events. */
    async store(pair: TokenPair, newEvents: readonly NewEvent[], metadata: EventMetadata): Promise<void> {
      await pairs.put(pair);
      await record(context, STREAMS.account, newEvents, { metadata });
    },
    /** Runs `work` while no other process changes the tokens. */
    exclusively: <T>(work: () => Promise<T>): Promise<T> => tokenLease.run(work),
    /** Returns the stored token pair, so that a caller can revoke it. */
    peek: (): Promise<TokenPair | undefined> => pairs.read(),
    drop: pairs.drop,
    /**
     * Calls the network with a valid access token. If the network refuses it (a SocialError `unauthorized`), refreshes
     * it once and calls again.
     */
    async use<T>(call: (token: string) => Promise<T>): Promise<T> {
      const current = await fresh();
      if (current === undefined) throw new SocialError("unauthorized", "no account is authorized");
      try {
        return await call(current);
      } catch (fault) {
        if (!(fault instanceof SocialError) || fault.kind !== "unauthorized") throw fault;
        const token = await renewed(current);
        if (token === undefined) throw fault;
        return await call(token);
      }
    },
    /**
     * Sends a message with a valid access token, and once more after a refresh if the network refuses the token. A
     * failure is returned as a result, not thrown.
     */
    async send(call: (token: string) => Promise<SendDmResult>): Promise<SendDmResult> {
      const current = await fresh().catch(asUnreachable);
      if (current === undefined) return { outcome: "unauthorized", rate: undefined };
      if (typeof current !== "string") return current;
      const result = await call(current);
      if (result.outcome !== "unauthorized") return result;
      const token = await renewed(current).catch(asUnreachable);
      if (token === undefined) return result;
      return typeof token === "string" ? await call(token) : token;
    },
    [Symbol.asyncDispose]: () => tokenLease[Symbol.asyncDispose](),
  };
}

/**
 * True if the access token can be used without a refresh. It is refreshed some minutes before it expires; if the
 * refresh token is missing or may be used up, only once it has expired.
 */
function isFresh({ expiresAt, refreshToken, begun }: StoredTokenPair, now: number): boolean {
  const belowMs = refreshToken === undefined || begun ? 0 : REFRESH_BELOW_MS;
  return expiresAt - now >= Math.max(1, belowMs);
}

/** Converts a failed token refresh to the result of sending a message: it was certainly not sent. */
function asUnreachable(fault: unknown): SendDmResult {
  if (!(fault instanceof SocialError)) throw fault;
  return { outcome: "unreachable", detail: fault.message, rate: undefined };
}

/**
 * Terms of the tokens' lease. It is short, because after a crash no instance can refresh until it expires. It is
 * renewed often, because a token request may take longer and one renewal may fail.
 */
const TERMS = { name: ROLES.tokens, ttlMs: 15_000, renewMs: 5_000 };
const POLL_MS = 200;

/**
 * Maximum wait for the tokens' lease, in ms: longer than a token request of another process, and than the lease of a
 * dead one.
 */
const WAIT_MS_MAX = 60_000;

/** Maximum number of attempts of work that loses the tokens' lease. A machine that slept loses it only once. */
const TRIES_MAX = 3;

/**
 * Creates the lease under which, across all processes, one piece of work at a time changes the account's tokens.
 * Disposing it waits for the work in progress.
 */
export function createTokenLease(context: LogContext) {
  const stopping = new AbortController();
  const oneByOne = createSerialQueue();
  return {
    /**
     * Runs one piece of work after the other, under the tokens' lease. If the lease is lost, repeats the work under a
     * new one. Throws a SocialError `unavailable` if no lease is free in time, or if the work loses each one.
     */
    run: <T>(work: (lease: HeldLease) => Promise<T>): Promise<T> =>
      oneByOne(() => underLease(context, work, stopping.signal)),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await oneByOne(async () => {});
    },
  };
}

async function underLease<T>(context: LogContext, work: (lease: HeldLease) => Promise<T>, stopping: AbortSignal) {
  for (let tried = 1; ; tried++) {
    await using lease = await waitForLease(context, stopping);
    try {
      return await work(lease);
    } catch (fault) {
      if (!(fault instanceof LeaseLost)) throw fault;
      if (tried === TRIES_MAX) throw new SocialError("unavailable", "another process took the tokens over");
    }
  }
}

async function waitForLease(context: LogContext, stopping: AbortSignal): Promise<HeldLease> {
  const { clock, sleep, holder } = context;
  const giveUpAt = clock() + WAIT_MS_MAX;
  for (;;) {
    const lease = await takeLease(context, { ...TERMS, holder });
    if (lease !== undefined) return lease;
    if (stopping.aborted || clock() > giveUpAt)
      throw new SocialError("unavailable", "another process holds the tokens");
    await sleep(POLL_MS, stopping);
  }
}
