import type { FaultKind } from "../../sandbox/faults.ts";

/** A fault of a network, as one row of the delivery matrix. */
export interface FaultRow {
  readonly name: string;
  /** The fault in the sandbox; undefined if the network does not answer at all, or only its credential changes. */
  readonly kind?: FaultKind;
  /** Seconds. */
  readonly retryAfter?: number;
  /**
   * The reason why a network that does not de-duplicate leaves the outcome unknown: no answer, none that tells, or a
   * bad body, which not every network needs.
   */
  readonly doubtful?: "unanswered" | "body";
  /** The message arrives in spite of the fault. */
  readonly arrives?: true;
  /** The host name does not resolve. */
  readonly hasNoAddress?: true;
  /** The fault suspends the channel until this happens. */
  readonly endsBy?: "by_hand" | "credential_changed";
}

export const FAULT_ROWS: readonly FaultRow[] = [
  { name: "429 with Retry-After", kind: "429", retryAfter: 3 },
  { name: "429 without", kind: "429" },
  { name: "500", kind: "500", doubtful: "unanswered" },
  { name: "502 in HTML", kind: "502_html", doubtful: "unanswered" },
  { name: "hang before delivery", kind: "timeout_before", doubtful: "unanswered" },
  { name: "hang after delivery", kind: "timeout_after_delivery", doubtful: "unanswered", arrives: true },
  { name: "reset before delivery", kind: "reset_before", doubtful: "unanswered" },
  { name: "reset after delivery", kind: "reset_after_delivery", doubtful: "unanswered", arrives: true },
  { name: "slow body", kind: "slow_body", doubtful: "body", arrives: true },
  { name: "huge body", kind: "huge_body", doubtful: "body", arrives: true },
  { name: "invalid JSON", kind: "invalid_json", doubtful: "body", arrives: true },
  { name: "no such host", hasNoAddress: true },
  { name: "refused, resumed by hand", kind: "token_revoked", endsBy: "by_hand" },
  { name: "refused, another credential", endsBy: "credential_changed" },
];
