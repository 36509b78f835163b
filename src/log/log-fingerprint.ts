import { createHash } from "node:crypto";

/** The identity of a log, different from all others; a restored copy begins another epoch. */
export interface LogIdentity {
  readonly id: string;
  /** Null for a copy that no service has opened yet. */
  readonly epoch: string | null;
}

/** Half of a SHA-256: no two logs share it. */
const HEX_DIGITS = 32;

/**
 * Identifies a log to callers who know it already: its id and its epoch, which are random, cannot be derived from it.
 */
export function fingerprintLog({ id, epoch }: LogIdentity): string {
  return createHash("sha256").update(`reachlog log\n${id}\n${epoch}`).digest("hex").slice(0, HEX_DIGITS);
}
