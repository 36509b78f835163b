import { hash } from "node:crypto";
import { type EventMetadata, STREAMS, type PartDeps } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type SocialNetwork } from "../networks/network.ts";
import { type Clock, isoTime } from "../platform/clock.ts";
import type { Vault } from "../vault/vault.ts";
import { type Authorization, type OAuth, OAuthError, type TokenPair } from "./oauth.ts";
import type { Tokens } from "./tokens.ts";

export interface LinkDeps extends Pick<PartDeps, "eventLog" | "projector"> {
  readonly oauth: OAuth;
  readonly tokens: Tokens;
  readonly network: SocialNetwork;
  /** The only handle that may authorize. If undefined, the first account that authorizes is linked. */
  readonly pinnedHandle: string | undefined;
}

export type Linked = Awaited<ReturnType<typeof linkAccount>>;

/**
 * Finishes an authorization: exchanges the code, asks the network whose tokens these are, and stores them. Tokens of
 * another account than the linked or pinned one are revoked instead. Throws OAuthError or SocialError; nothing is
 * stored then.
 */
export async function linkAccount(
  deps: LinkDeps,
  redirect: URLSearchParams,
  authorization: Authorization,
  metadata: EventMetadata,
) {
  const pair = await deps.oauth.exchange(redirect, authorization);
  return deps.tokens.exclusively(async () => {
    const user = await deps.network.me(pair.accessToken).catch(async (fault: unknown) => {
      await discard(deps.oauth, pair);
      throw fault;
    });
    // A command in another process may just have unlinked the former account.
    await deps.projector.until((await deps.eventLog.store.head()).position);
    if (!mayLink(deps, user)) {
      await discard(deps.oauth, pair);
      return { kind: "wrong_account" as const };
    }
    const data = { user, scopes: [...pair.scopes], expires_at: isoTime(pair.expiresAt) };
    await deps.tokens.store(pair, [{ type: "AccountAuthorized", data }], metadata);
    return { kind: "linked" as const, user, scopes: pair.scopes };
  });
}

/**
 * Revokes the grant and deletes the tokens; `revoked` is true if the network confirmed. Undefined if no account is
 * linked and no tokens are stored. Throws a SocialError `unavailable` if the tokens were replaced meanwhile.
 */
export async function unlinkAccount(
  deps: Pick<LinkDeps, "oauth" | "tokens" | "eventLog" | "projector">,
  metadata: EventMetadata,
): Promise<{ readonly revoked: boolean } | undefined> {
  return deps.tokens.exclusively(async () => {
    const { user } = deps.projector.state("account");
    const pair = await deps.tokens.peek();
    if (user === null && pair === undefined) return undefined;
    const revoked = pair !== undefined && (await discard(deps.oauth, pair));
    // After a standstill of this process, newer tokens may be stored. The caller did not ask to unlink those, and they
    // are not revoked.
    if (!(await deps.tokens.drop(pair?.accessToken)))
      throw new SocialError("unavailable", "the tokens were replaced while they were revoked: unlink again");
    const data = { user_id: user?.id ?? "", revoked };
    await record(deps, STREAMS.account, [{ type: "AccountUnlinked", data }], { metadata });
    return { revoked };
  });
}

function mayLink(deps: LinkDeps, user: { id: string; username: string }): boolean {
  const { user: linked } = deps.projector.state("account");
  if (linked !== null && linked.id !== user.id) return false;
  return deps.pinnedHandle === undefined || deps.pinnedHandle.toLowerCase() === user.username.toLowerCase();
}

/** Revokes tokens that are not kept, so that they do not stay valid. True if the network confirmed. */
async function discard(oauth: OAuth, pair: TokenPair): Promise<boolean> {
  let revoked = true;
  for (const token of [pair.refreshToken, pair.accessToken]) {
    try {
      if (token !== undefined) await oauth.revoke(token);
    } catch (fault) {
      if (!(fault instanceof OAuthError)) throw fault;
      revoked = false;
    }
  }
  return revoked;
}

/** How long a used state is remembered: for as long as its cookie could come back. */
export const STATE_TTL_MS = 10 * 60_000;

export type UsedStates = ReturnType<typeof createUsedStates>;

/** Remembers used states and finished authorizations across restarts and instances, until they expire. */
export function createUsedStates(vault: Pick<Vault, "claim" | "isClaimed">, clock: Clock) {
  return {
    /** Marks a state as used. False if it was used before. */
    claim(state: string): Promise<boolean> {
      const now = clock();
      return vault.claim(`oauth-state/${hash("sha256", state)}`, now + STATE_TTL_MS, now);
    },
    /** Remembers that this redirect linked this user. */
    async finish(redirect: URLSearchParams, userId: string): Promise<void> {
      const now = clock();
      await vault.claim(finishedName(redirect, userId), now + STATE_TTL_MS, now);
    },
    isFinished: (redirect: URLSearchParams, userId: string): Promise<boolean> =>
      vault.isClaimed(finishedName(redirect, userId), clock()),
  };
}

/** Hashes the whole redirect, including its code: the same state with another code has linked no account. */
function finishedName(redirect: URLSearchParams, userId: string): string {
  return `oauth-finished/${hash("sha256", `${userId} ${redirect.toString()}`)}`;
}
