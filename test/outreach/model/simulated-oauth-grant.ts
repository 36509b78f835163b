import { OAuthError, type OAuth, type TokenPair } from "../../../src/account/oauth.ts";
import type { Kept } from "../../../src/vault/secret-store.ts";
import type { Secrets } from "../../../src/vault/vault.ts";

/** Lifetime of an access token; X documents two hours. */
const LIFETIME_MS = 2 * 3_600_000;

/** Simulated OAuth grant at the network, and the vault in which all processes keep its tokens. */
export interface Grant {
  readonly oauth: Pick<OAuth, "refresh">;
  readonly vault: Secrets;
  accepts(accessToken: string): boolean;
  /** Simulates that a person authorizes the account. The vault then holds a new pair of tokens. */
  authorize(): Promise<void>;
  /** Makes the network reject the access token before it expires; the refresh token still works. */
  expire(): void;
  /** Simulates that the person revokes the grant: the network rejects all its tokens. */
  revoke(): void;
}

/**
 * Creates a simulated OAuth grant of the account. `now` is the network's clock; `toOurs` converts a time of that clock
 * to the service's clock.
 */
export function createGrant(now: () => number, toOurs: (ms: number) => number): Grant {
  const vault = createMemoryVault();
  let made = 0;
  let access: { readonly token: string; readonly until: number } | undefined;
  let refreshToken: string | undefined;

  const issue = (): TokenPair => {
    made += 1;
    access = { token: `access-${made}`, until: now() + LIFETIME_MS };
    refreshToken = `refresh-${made}`;
    return { accessToken: access.token, refreshToken, expiresAt: toOurs(access.until), scopes: ["dm.write"] };
  };

  return {
    vault,
    oauth: {
      async refresh(token) {
        // A refresh token works once.
        if (token !== refreshToken) throw new OAuthError("rejected", "invalid_grant");
        return issue();
      },
    },
    accepts: (token) => access !== undefined && token === access.token && now() < access.until,
    async authorize() {
      await vault.put("x-tokens", JSON.stringify(issue()), (await vault.get("x-tokens"))?.version ?? 0);
    },
    expire: () => {
      access = undefined;
    },
    revoke: () => {
      access = undefined;
      refreshToken = undefined;
    },
  };
}

function createMemoryVault(): Secrets {
  const secrets = new Map<string, Kept>();
  return {
    get: async (name) => secrets.get(name),
    async put(name, value, expected) {
      if ((secrets.get(name)?.version ?? 0) !== expected) return false;
      secrets.set(name, { version: expected + 1, value });
      return true;
    },
    delete: async (name, expected) => secrets.get(name)?.version === expected && secrets.delete(name),
  };
}
