import { createHash } from "node:crypto";
import type { Clock } from "../platform/clock.ts";
import type { Vault } from "../vault/vault.ts";

/** A used state stays used for as long as its cookie could come back. */
const STATE_TTL_MS = 10 * 60_000;

/** What became of authorizations that were begun, over restarts and instances; what is over is forgotten. */
export interface UsedStates {
  /** Marks a state as used; false when it was. */
  claim(state: string): Promise<boolean>;
  /** Remembers that this redirect linked this user. */
  finish(redirect: URLSearchParams, userId: string): Promise<void>;
  isFinished(redirect: URLSearchParams, userId: string): Promise<boolean>;
}

export function createUsedStates(vault: Pick<Vault, "claim" | "isClaimed">, clock: Clock): UsedStates {
  return {
    claim(state) {
      const now = clock();
      return vault.claim(`oauth-state/${digestOf(state)}`, now + STATE_TTL_MS, now);
    },
    async finish(redirect, userId) {
      const now = clock();
      await vault.claim(finishedName(redirect, userId), now + STATE_TTL_MS, now);
    },
    isFinished: (redirect, userId) => vault.isClaimed(finishedName(redirect, userId), clock()),
  };
}

/** The code is part of the name: the same state with another code has linked no account. */
function finishedName(redirect: URLSearchParams, userId: string): string {
  return `oauth-finished/${digestOf(`${userId} ${redirect.toString()}`)}`;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
