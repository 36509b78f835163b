import { createHash } from "node:crypto";

/** Identity of a log, different from that of all others. A restored copy keeps it and begins another epoch. */
export interface LogIdentity {
  readonly id: string;
  /** Epoch of the log; null for a copy that no service has opened yet. */
  readonly epoch: string | null;
}

/** Hexadecimal digits of a fingerprint: half of a SHA-256, so no two logs share it. */
const HEX_DIGITS = 32;

/** Computes a fingerprint that tells logs apart. Their ids and epochs, which are random, cannot be derived from it. */
export function fingerprintLog({ id, epoch }: LogIdentity): string {
  return createHash("sha256").update(`reachlog log\n${id}\n${epoch}`).digest("hex").slice(0, HEX_DIGITS);
}
