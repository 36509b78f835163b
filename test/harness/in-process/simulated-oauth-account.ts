import { OAuthError, type OAuth, type TokenPair } from "../../../src/account/oauth.ts";
import { createTokens, type Tokens, type TokensContext } from "../../../src/account/tokens.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import { openVault, type Vault } from "../../../src/vault/vault.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { METADATA, openMemoryLog, type MemoryLog, toStateContext } from "./temporary-log.ts";

export const START = Date.parse("2026-03-01T08:00:00Z");
export const LIFETIME_MS = 7_200_000;
export const USER = { id: "1", username: "we", name: "We" };

/** Simulated OAuth server of the network: a refresh token works once, as with X. */
export interface SimulatedOAuth extends OAuth {
  /** Refresh tokens that the simulated server received, in order. */
  readonly refreshed: string[];
  readonly revoked: string[];
  /** Faults that the next calls of the simulated server get, in order. */
  readonly faults: OAuthError[];
  grant(): TokenPair;
  /** True if the simulated server accepts this access token. */
  accepts(token: string): boolean;
}

function createSimulatedOAuth(clock: () => number): SimulatedOAuth {
  let grants = 0;
  const refreshed: string[] = [];
  const revoked: string[] = [];
  const faults: OAuthError[] = [];
  const grant = (): TokenPair => {
    grants += 1;
    return {
      accessToken: `access-${grants}`,
      refreshToken: `refresh-${grants}`,
      expiresAt: clock() + LIFETIME_MS,
      scopes: ["dm.write"],
    };
  };
  const failing = (): void => {
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
  };
  return {
    refreshed,
    revoked,
    faults,
    grant,
    accepts: (token) => token === `access-${grants}`,
    begin: () => Promise.reject(new Error("not simulated")),
    async exchange() {
      failing();
      return grant();
    },
    async refresh(token) {
      refreshed.push(token);
      failing();
      if (token !== `refresh-${grants}`) throw new OAuthError("rejected", "invalid_request");
      return grant();
    },
    async revoke(token) {
      revoked.push(token);
      failing();
    },
  };
}

/** Simulated process of the service, which shares log and vault with others. */
export interface AccountProcess {
  readonly tokens: Tokens & AsyncDisposable;
  readonly projector: Projector;
  readonly vault: Vault;
  /** Stops the timers of this process: work that waits for a timer stands still, and no lease is renewed. */
  freeze(): void;
  thaw(): void;
}

export interface AccountHarness extends MemoryLog {
  readonly oauth: SimulatedOAuth;
  now: number;
  /** Announcements to the operator, by their keys. The service announces each key only once. */
  readonly announced: Map<string, string>;
  start(replaced?: Partial<TokensContext>): Promise<AccountProcess>;
  /**
   * Links the test account {@link USER} to the service with a new access and refresh token. The access token expires in
   * `lifeMs`.
   */
  link(process: AccountProcess, lifeMs?: number): Promise<void>;
  types(): Promise<string[]>;
}

const POLL_MS_MAX = 1_000;

/** Waits for one turn of the event loop. All work continues in it, except work that waits for a clock. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function openAccount(): Promise<AccountHarness> {
  const clock = (): number => world.now;
  const log = await openMemoryLog({ clock });
  const { store, eventLog, folder } = log;
  const oauth = createSimulatedOAuth(clock);
  let processes = 0;
  let hasEnded = false;
  log.use({ [Symbol.dispose]: () => void (hasEnded = true) });
  const world: AccountHarness = {
    ...log,
    oauth,
    now: START,
    announced: new Map(),
    async start(replaced = {}) {
      processes += 1;
      const timers = { areFrozen: false };
      const projector = log.use(await startProjector(store));
      const vault = log.use(await openVault(sqliteSecrets(folder.file("vault")), new Uint8Array(32)));
      const context = toStateContext(
        { eventLog, projector },
        {
          clock,
          wallClock: clock,
          async sleep(ms, signal) {
            // A short wait, such as that of a poller, ends in the next turn of the event loop. A longer one ends when
            // the test has moved its clock far enough.
            const until = ms < POLL_MS_MAX ? 0 : world.now + ms;
            do {
              await nextTurn();
              // After the test the simulated process does nothing more. Otherwise it would wait for its clock, and keep
              // the real process busy during all further tests.
              if (hasEnded) await new Promise(() => {});
            } while ((timers.areFrozen || world.now < until) && !signal.aborted);
          },
          holder: `process-${processes}`,
          announce: async (text, key) => {
            world.announced.set(key, text);
          },
        },
      );
      const tokens = createTokens({ ...context, vault, oauth, ...replaced });
      return {
        tokens,
        projector,
        vault,
        freeze() {
          timers.areFrozen = true;
        },
        thaw() {
          timers.areFrozen = false;
        },
      };
    },
    async link({ tokens }, lifeMs = LIFETIME_MS) {
      const pair = { ...oauth.grant(), expiresAt: world.now + lifeMs };
      const data = { user: USER, scopes: [...pair.scopes], expires_at: new Date(pair.expiresAt).toISOString() };
      await tokens.store(pair, [{ type: "AccountAuthorized", data }], METADATA);
    },
    async types() {
      return (await Array.fromAsync(store.read())).map(({ type }) => type);
    },
  };
  return world;
}
