import { createHash } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Vault } from "./vault.ts";

/** A used state stays used for as long as its cookie could come back. */
const STATE_TTL_MS = 10 * 60_000;

/** Marks a state as used, over restarts and instances; false when it was. What is over is forgotten. */
export function createUsedStates(vault: Pick<Vault, "claim">, clock: Clock): (state: string) => boolean {
  return (state) => {
    const now = clock();
    return vault.claim(`oauth-state/${createHash("sha256").update(state).digest("hex")}`, now + STATE_TTL_MS, now);
  };
}
