import { type EventMetadata, type NewEvent, STREAMS, type LogContext, type StateContext } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type SendDmResult } from "../networks/network.ts";
import type { OAuth, TokenPair } from "./oauth.ts";
import { createStoredTokens, type StoredTokenPair, refreshPair } from "./refresh.ts";
import type { Secrets } from "../vault/vault.ts";
import { LeaseLost } from "eventstore-lite";
import { takeLease, type HeldLease, ROLES } from "../log/lease.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";

export type Tokens = ReturnType<typeof createTokens>;

/** The right to call the network as the authorized account. */
export interface Credentials {
  readonly use: Tokens["use"];
  readonly send: Tokens["send"];
}

/** A log, and where the tokens of the linked account are stored and refreshed. */
export interface TokensContext extends StateContext {
  readonly vault: Secrets;
  readonly oauth: OAuth;
}

/** Remaining life in ms below which an access token is refreshed before it is used. */
const REFRESH_BELOW_MS = 5 * 60_000;

/**
 * Creates access to the linked account's tokens. Disposing it waits for a refresh in progress: an answer that is not
 * stored would be lost, and the grant with it.
 */
export function createTokens(context: TokensContext) {
  const { projector } = context;
  const pairs = createStoredTokens(context.vault);
  const tokenLease = createTokenLease(context);
  let refreshing: Promise<string | undefined> | undefined;

  /**
   * Refreshes the access token. All callers that find it stale wait for one refresh, which continues when a caller
   * leaves.
   */
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
   * Returns a new access token after a 401; undefined if the grant is dead. Throws a SocialError `unavailable` if there
   * is no new one.
   */
  const renewed = async (refused: string): Promise<string | undefined> => {
    const token = await refresh(refused);
    if (token !== refused) return token;
    throw new SocialError("unavailable", "the access token is refused and the network cannot be asked for a new one");
  };

  return {
    /** Stores a new token pair durably, then appends the events about it. */
    async store(pair: TokenPair, newEvents: readonly NewEvent[], metadata: EventMetadata): Promise<void> {
      await pairs.put(pair);
      await record(context, STREAMS.account, newEvents, { metadata });
    },
    /** Runs `work` while no other process changes the tokens. */
    exclusively: <T>(work: () => Promise<T>): Promise<T> => tokenLease.run(work),
    /** Returns the stored token pair, for revoking it. */
    peek: (): Promise<TokenPair | undefined> => pairs.read(),
    drop: pairs.drop,
    /**
     * Calls the network with a fresh access token; after a SocialError `unauthorized`, refreshes the token once and
     * calls again.
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
     * Sends a message with a fresh access token, and once more after a refresh if the network refuses the token.
     * Failures are results rather than errors.
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
 * True if the access token can be used without a refresh. It is refreshed early, unless the refresh token is missing or
 * may be used up; then only when the access token expires.
 */
function isFresh({ expiresAt, refreshToken, begun }: StoredTokenPair, now: number): boolean {
  const belowMs = refreshToken === undefined || begun ? 0 : REFRESH_BELOW_MS;
  return expiresAt - now >= Math.max(1, belowMs);
}

/** Converts a failed refresh to the result of a message that was certainly not sent. */
function asUnreachable(fault: unknown): SendDmResult {
  if (!(fault instanceof SocialError)) throw fault;
  return { outcome: "unreachable", detail: fault.message, rate: undefined };
}

/**
 * Terms of the tokens' lease. It is short, since no instance can refresh while a dead process's lease lasts, and
 * renewed often, since a token request may take longer and one renewal may fail.
 */
const TERMS = { name: ROLES.tokens, ttlMs: 15_000, renewMs: 5_000 };
const POLL_MS = 200;

/**
 * Longest wait for the tokens' lease: longer than another process's token request takes, and than a dead process's
 * lease lasts.
 */
const WAIT_MS_MAX = 60_000;

/**
 * Most attempts of work that lost the tokens' lease: enough for a machine that slept, which loses the lease only once.
 */
const TRIES_MAX = 3;

/**
 * Creates the lease of the account's tokens, under which one piece of work runs at a time across all processes.
 * Disposing it waits for the work in progress.
 */
export function createTokenLease(context: LogContext) {
  const stopping = new AbortController();
  const oneByOne = createSerialQueue();
  return {
    /**
     * Runs work in order, under the tokens' lease. Retries under a new lease if it lost one, as after a standstill of
     * this process. Throws a SocialError `unavailable` if others hold the lease too long, or if it loses each one.
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
