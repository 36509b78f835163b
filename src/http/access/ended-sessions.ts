import type { Clock } from "../../platform/clock.ts";
import type { Vault } from "../../vault/vault.ts";

/** How long an instance goes without asking whether a session was ended at another one. */
export const LOOK_AGAIN_MS = 2_000;

/** Sessions that an instance remembers: 100 bytes each. Past that, each one is looked up once more. */
const REMEMBERED_MAX = 10_000;

export type EndedSessions = ReturnType<typeof createEndedSessions>;

/**
 * The sessions that were signed out, kept for all instances until they would have expired. While the claims are out of
 * reach, an instance goes by what it knew last.
 */
export function createEndedSessions(claims: Pick<Vault, "claim" | "isClaimed">, lifetimeMs: number, clock: Clock) {
  let looked = new Map<string, { readonly at: number; readonly isEnded: boolean }>();
  const remember = (id: string, isEnded: boolean): void => {
    if (looked.size >= REMEMBERED_MAX) looked = new Map();
    looked.set(id, { at: clock(), isEnded });
  };
  return {
    isEnded: (id: string): boolean => looked.get(id)?.isEnded === true,
    /** Resolves once it is known whether the session was ended at any instance; undefined: that is known. */
    look(id: string): Promise<void> | undefined {
      const known = looked.get(id);
      if (known !== undefined && (known.isEnded || clock() - known.at < LOOK_AGAIN_MS)) return undefined;
      return claims.isClaimed(claimName(id), clock()).then(
        (isEnded) => remember(id, isEnded),
        () => {},
      );
    },
    /** Ends the session at all instances. Throws what the vault throws; it has ended here then. */
    async end(id: string): Promise<void> {
      remember(id, true);
      const now = clock();
      await claims.claim(claimName(id), now + lifetimeMs, now);
    },
  };
}

function claimName(id: string): string {
  return `ended-session/${id}`;
}
