import type { TokenPair } from "./oauth.ts";
import type { Secrets } from "../vault/vault.ts";

const SECRET = "x-tokens";

export interface StoredTokenPair extends TokenPair {
  /** A refresh with it was begun and its answer is not stored: unless it still comes, the refresh token may be used up. */
  readonly begun: boolean;
  /** Grows with each change. */
  readonly version: number;
}

/** The account's tokens in the vault. What is stored is durable, and all instances see it. */
export interface StoredTokens {
  read(): Promise<StoredTokenPair | undefined>;
  /** Stores a pair in place of whatever there is. */
  put(pair: TokenPair): Promise<void>;
  /** Marks the pair before its refresh token is used. False: it changed since it was read. */
  begin(pair: StoredTokenPair): Promise<boolean>;
  /** Stores a pair in place of the one with the access token `stale`. False: that one is gone, nothing was stored. */
  replace(stale: string, pair: TokenPair & { readonly begun: boolean }): Promise<boolean>;
  /** Leaves none. False: there is another than the one with the access token `stale`, and nothing was deleted. */
  drop(stale: string | undefined): Promise<boolean>;
}

export function createStoredTokens(vault: Secrets): StoredTokens {
  const read = async (): Promise<StoredTokenPair | undefined> => {
    const kept = await vault.get(SECRET);
    if (kept === undefined) return undefined;
    const pair = JSON.parse(kept.value) as TokenPair & { readonly begun?: boolean };
    return { ...pair, begun: pair.begun ?? false, version: kept.version };
  };
  const write = ({ accessToken, refreshToken, expiresAt, scopes }: TokenPair, begun: boolean, expected: number) =>
    vault.put(SECRET, JSON.stringify({ accessToken, refreshToken, expiresAt, scopes, begun }), expected);

  return {
    read,
    async put(pair) {
      for (;;) if (await write(pair, false, (await read())?.version ?? 0)) return;
    },
    async begin(pair) {
      // Versions start over with another account.
      const isSame = (await read())?.accessToken === pair.accessToken;
      return isSame && (await write(pair, true, pair.version));
    },
    async replace(stale, pair) {
      for (;;) {
        const kept = await read();
        if (kept?.accessToken !== stale) return false;
        if (await write(pair, pair.begun, kept.version)) return true;
      }
    },
    async drop(stale) {
      for (;;) {
        const kept = await read();
        if (kept?.accessToken !== stale) return false;
        if (kept === undefined || (await vault.delete(SECRET, kept.version))) return true;
      }
    },
  };
}
