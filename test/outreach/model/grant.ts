import { OAuthError, type OAuth, type TokenPair } from "../../../src/account/oauth.ts";
import type { Kept } from "../../../src/vault/encrypted-secrets.ts";
import type { Secrets } from "../../../src/vault/vault.ts";

/** X's documented two hours. */
const LIFETIME_MS = 2 * 3_600_000;

/** The network's side of the grant, and the vault that all processes keep their tokens in. */
export interface Grant {
  readonly oauth: Pick<OAuth, "refresh">;
  readonly vault: Secrets;
  accepts(accessToken: string): boolean;
  /** A person authorizes the account; the vault then holds a new pair of tokens. */
  authorize(): Promise<void>;
  /** The network drops the access token early; the refresh token still works. */
  expire(): void;
  /** The person revokes the grant; none of its tokens works any more. */
  revoke(): void;
}

/** `toOurs` converts a time of the network to our clock. */
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
