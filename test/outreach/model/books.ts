import type { Ask } from "./witness.ts";

/** Something happened that must never happen. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violated(rule: string, detail: object): never {
  throw new Violation(`${rule} ${JSON.stringify(detail)}`);
}

export interface Attempt {
  readonly id: string;
  readonly recipientId: string;
  readonly runId: string;
  readonly day: string;
  readonly timezone: string;
  readonly position: number;
  /** When the intent was recorded, ms since the epoch. */
  readonly time: number;
  state: "open" | "in_doubt" | "sent" | "failed";
  /** It was in doubt at some time. */
  doubted: boolean;
  reason?: string;
  /** Its place was given back. */
  isFreed?: boolean;
  /** Position of the final outcome. */
  settledAt?: number;
  /** A later attempt is legal: the outcome says so, or an operator. */
  mayRepeat: boolean;
  asks: Ask[];
}

/** What the log says so far, kept by hand and not by the projections that are tested. */
export interface Books {
  readonly attempts: Map<string, Attempt>;
  /** Person -> their newest attempt. */
  readonly latest: Map<string, Attempt>;
  /** Person -> position of the first suppression. */
  readonly suppressed: Map<string, number>;
  /** Day -> places taken. */
  readonly places: Map<string, number>;
  /** Time of the first intent after the last change of the quota's time zone. */
  changedAt: number;
  /** Messages that each person may have got by now: one, and one more for each retry after a `not_delivered`. */
  readonly allowed: Map<string, number>;
  readonly messageIds: Set<string>;
  readonly skips: Set<string>;
  /** Who wrote to us, which is consent. */
  readonly wrote: Set<string>;
  readonly counts: { sent: number; skipped: number; failed: number };
  /** Messages that are older were left unread by the first reading of the inbox, which says so. */
  backlogBefore: number;
  openRun: { readonly id: string; readonly dry: boolean } | undefined;
}

export function createBooks(): Books {
  return {
    attempts: new Map(),
    latest: new Map(),
    suppressed: new Map(),
    places: new Map(),
    changedAt: -Infinity,
    allowed: new Map(),
    messageIds: new Set(),
    skips: new Set(),
    wrote: new Set(),
    counts: { sent: 0, skipped: 0, failed: 0 },
    backlogBefore: -Infinity,
    openRun: undefined,
  };
}
