import { createHash } from "node:crypto";

/** Identity of a log, different for all others; a restored copy begins another epoch. */
export interface LogIdentity {
  readonly id: string;
  /** Null: of a copy that no service has opened yet. */
  readonly epoch: string | null;
}

/** Half of a SHA-256: two logs never share it. */
const HEX_DIGITS = 32;

/** Names a log to callers who know it already: neither its id nor its epoch, which are random, can be found from it. */
export function fingerprintLog({ id, epoch }: LogIdentity): string {
  return createHash("sha256").update(`reachlog log\n${id}\n${epoch}`).digest("hex").slice(0, HEX_DIGITS);
}
