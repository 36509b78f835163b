import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type SendDmResult } from "../networks/network.ts";
import type { TokenPair } from "./oauth.ts";
import { createStoredTokens, type StoredTokenPair, refreshPair, type RefreshDeps } from "./refresh.ts";
import type { Secrets } from "../vault/vault.ts";
import { LeaseLost } from "eventstore-lite";
import { takeLease, type HeldLease, type LeaseDeps, ROLES } from "../log/lease.ts";
import type { Clock } from "../platform/clock.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";

export type Tokens = ReturnType<typeof createTokens>;

/** The authorized account's right to call the network. */
export type Credentials = Pick<Tokens, "use" | "send">;

export interface TokensDeps extends Omit<RefreshDeps, "pairs">, TokenLeaseDeps {
  readonly vault: Secrets;
}

/** A token with less life than this is refreshed before it is used. */
const REFRESH_BELOW_MS = 5 * 60_000;

/** Disposing it waits for a refresh in progress: an answer that is not stored would be lost, and the grant with it. */
export function createTokens(deps: TokensDeps) {
  const { projector, eventLog } = deps;
  const pairs = createStoredTokens(deps.vault);
  const tokenLease = createTokenLease(deps);
  let refreshing: Promise<string | undefined> | undefined;

  /**
   * Single flight: all callers that find the token stale wait for one refresh, which continues when a caller leaves.
   */
  const refresh = (stale: string | undefined): Promise<string | undefined> => {
    refreshing ??= tokenLease
      .run((lease) => refreshPair({ ...deps, pairs }, stale, lease))
      .finally(() => {
        refreshing = undefined;
      });
    return refreshing;
  };

  const fresh = async (): Promise<string | undefined> => {
    if (!projector.state("account").authorized) return undefined;
    const pair = await pairs.read();
    if (pair === undefined || refreshing !== undefined) return refresh(pair?.accessToken);
    return isFresh(pair, deps.clock()) ? pair.accessToken : refresh(pair.accessToken);
  };

  /**
   * Returns a new token after a 401; undefined if the grant is dead. Throws a SocialError `unavailable` if there is no
   * new one.
   */
  const renewed = async (refused: string): Promise<string | undefined> => {
    const token = await refresh(refused);
    if (token !== refused) return token;
    throw new SocialError("unavailable", "the access token is refused and the network cannot be asked for a new one");
  };

  return {
    /** Stores a new pair durably, then appends the events. */
    async store(pair: TokenPair, newEvents: readonly NewEvent[], metadata: EventMetadata): Promise<void> {
      await pairs.put(pair);
      await record({ eventLog, projector }, STREAMS.account, newEvents, { metadata });
    },
    /** Runs `work` while no other process touches the tokens. */
    exclusively: <T>(work: () => Promise<T>): Promise<T> => tokenLease.run(work),
    /** Returns the stored pair, for revoking it. */
    peek: (): Promise<TokenPair | undefined> => pairs.read(),
    drop: pairs.drop,
    /** Calls with a fresh token; a SocialError `unauthorized` refreshes it once and calls again. */
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
    /** Like `use`, for a send, whose failures are results rather than errors. */
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
 * True if the token can be used without a refresh. Refreshes early, unless the refresh token is missing or may be used
 * up; then only when the token expires.
 */
function isFresh({ expiresAt, refreshToken, begun }: StoredTokenPair, now: number): boolean {
  const belowMs = refreshToken === undefined || begun ? 0 : REFRESH_BELOW_MS;
  return expiresAt - now >= Math.max(1, belowMs);
}

/** Turns a failed refresh into a result: the message was certainly not sent. */
function asUnreachable(fault: unknown): SendDmResult {
  if (!(fault instanceof SocialError)) throw fault;
  return { outcome: "unreachable", detail: fault.message, rate: undefined };
}

export interface TokenLeaseDeps extends LeaseDeps {
  readonly clock: Clock;
  /** Names this process in the lease. */
  readonly holder: string;
}

/**
 * Short, since no instance can refresh while a dead process's lease lasts. Renewed, since a token request may take
 * longer, and often enough that one renewal may fail.
 */
const TERMS = { name: ROLES.tokens, ttlMs: 15_000, renewMs: 5_000 };
const POLL_MS = 200;

/** Longer than another process's token request takes, and than a dead process's lease lasts. */
const WAIT_MS_MAX = 60_000;

/** Enough for a machine that slept, which loses the lease only once. */
const TRIES_MAX = 3;

/** Runs one piece of work at a time across all processes. Disposing it waits for the work in progress. */
export function createTokenLease(deps: TokenLeaseDeps) {
  const stopping = new AbortController();
  const oneByOne = createSerialQueue();
  return {
    /**
     * Runs work in order, under a lease between processes. Retries under a new one after LeaseLost (this process stood
     * still, or its clock was moved). Throws a SocialError `unavailable` if others take too long, or if it loses each
     * lease.
     */
    run: <T>(work: (lease: HeldLease) => Promise<T>): Promise<T> =>
      oneByOne(() => underLease(deps, work, stopping.signal)),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await oneByOne(async () => {});
    },
  };
}

async function underLease<T>(deps: TokenLeaseDeps, work: (lease: HeldLease) => Promise<T>, stopping: AbortSignal) {
  for (let tried = 1; ; tried++) {
    await using lease = await waitForLease(deps, stopping);
    try {
      return await work(lease);
    } catch (fault) {
      if (!(fault instanceof LeaseLost)) throw fault;
      if (tried === TRIES_MAX) throw new SocialError("unavailable", "another process took the tokens over");
    }
  }
}

async function waitForLease(deps: TokenLeaseDeps, stopping: AbortSignal): Promise<HeldLease> {
  const { clock, sleep, holder } = deps;
  const giveUpAt = clock() + WAIT_MS_MAX;
  for (;;) {
    const lease = await takeLease(deps, { ...TERMS, holder });
    if (lease !== undefined) return lease;
    if (stopping.aborted || clock() > giveUpAt)
      throw new SocialError("unavailable", "another process holds the tokens");
    await sleep(POLL_MS, stopping);
  }
}
