import { hash } from "node:crypto";
import { type EventMetadata, STREAMS, type StateContext } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type SocialNetwork } from "../networks/network.ts";
import { type Clock, isoTime } from "../platform/clock-ids-and-timers.ts";
import type { Claims } from "../vault/secret-database.ts";
import { type Authorization, type OAuth, OAuthError, type TokenPair } from "./oauth.ts";
import type { Tokens } from "./tokens.ts";

/** Access to the X account for which the service acts: its OAuth client, its tokens, and the network's client. */
export interface Account {
  readonly oauth: OAuth;
  readonly tokens: Tokens;
  readonly network: SocialNetwork;
  /** The only X handle that may be linked. If undefined, the first account that authorizes is linked. */
  readonly pinnedHandle: string | undefined;
}

export type Linked = Awaited<ReturnType<typeof linkAccount>>;

/**
 * Finishes the authorization of an X account: exchanges the code, asks X whose tokens these are, and stores them.
 * Tokens of another account than the linked or pinned one are revoked. Throws OAuthError or SocialError; nothing is
 * stored then.
 */
export async function linkAccount(
  context: StateContext,
  account: Account,
  redirect: URLSearchParams,
  authorization: Authorization,
  metadata: EventMetadata,
) {
  const { oauth, tokens, network } = account;
  const pair = await oauth.exchange(redirect, authorization);
  return tokens.exclusively(async () => {
    const user = await network.me(pair.accessToken).catch(async (fault: unknown) => {
      await discard(oauth, pair);
      throw fault;
    });
    // Another process may just have unlinked the former account, so the newest state counts.
    await context.projector.until((await context.eventLog.store.head()).position);
    if (!mayLink(context, account, user)) {
      await discard(oauth, pair);
      return { kind: "wrong_account" as const };
    }
    const data = { user, scopes: [...pair.scopes], expires_at: isoTime(pair.expiresAt) };
    await tokens.store(pair, [{ type: "AccountAuthorized", data }], metadata);
    return { kind: "linked" as const, user, scopes: pair.scopes };
  });
}

/**
 * Revokes the account's grant and deletes its tokens. `revoked` is true if the network confirmed; undefined if nothing
 * was linked or stored. Throws a SocialError `unavailable` if other tokens were stored meanwhile.
 */
export async function unlinkAccount(
  context: StateContext,
  { oauth, tokens }: Account,
  metadata: EventMetadata,
): Promise<{ readonly revoked: boolean } | undefined> {
  return tokens.exclusively(async () => {
    const { user } = context.projector.state("account");
    const pair = await tokens.peek();
    if (user === null && pair === undefined) return undefined;
    const revoked = pair !== undefined && (await discard(oauth, pair));
    // If this process was paused, another one may have stored newer tokens. The caller did not mean to unlink those, so
    // they are kept, and the caller must unlink again.
    if (!(await tokens.drop(pair?.accessToken)))
      throw new SocialError("unavailable", "the tokens were replaced while they were revoked: unlink again");
    const data = { user_id: user?.id ?? "", revoked };
    await record(context, STREAMS.account, [{ type: "AccountUnlinked", data }], { metadata });
    return { revoked };
  });
}

function mayLink(
  { projector }: StateContext,
  { pinnedHandle }: Account,
  user: { id: string; username: string },
): boolean {
  const { user: linked } = projector.state("account");
  if (linked !== null && linked.id !== user.id) return false;
  return pinnedHandle === undefined || pinnedHandle.toLowerCase() === user.username.toLowerCase();
}

/**
 * Revokes tokens that are not stored or no longer wanted, so that they cannot be used. Returns true if the network
 * confirmed.
 */
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

/**
 * For how long a used OAuth state is remembered, in ms: as long as the browser keeps the cookie of the authorization.
 */
export const STATE_TTL_MS = 10 * 60_000;

export type UsedStates = ReturnType<typeof createUsedStates>;

/**
 * Remembers, for all instances and across restarts, which OAuth states were used and which OAuth callbacks linked an
 * account, until they expire.
 */
export function createUsedStates(vault: Claims, clock: Clock) {
  return {
    /** Marks an OAuth state as used. Returns false if it was used before. */
    claim(state: string): Promise<boolean> {
      const now = clock();
      return vault.claim(`oauth-state/${hash("sha256", state)}`, now + STATE_TTL_MS, now);
    },
    /** Remembers that this OAuth callback (X's redirect back to this service) linked this user. */
    async finish(redirect: URLSearchParams, userId: string): Promise<void> {
      const now = clock();
      await vault.claim(finishedName(redirect, userId), now + STATE_TTL_MS, now);
    },
    isFinished: (redirect: URLSearchParams, userId: string): Promise<boolean> =>
      vault.isClaimed(finishedName(redirect, userId), clock()),
  };
}

/**
 * Returns the name under which a redirect that linked an account is remembered. It hashes the whole redirect, because
 * the same state with another code has linked no account.
 */
function finishedName(redirect: URLSearchParams, userId: string): string {
  return `oauth-finished/${hash("sha256", `${userId} ${redirect.toString()}`)}`;
}
