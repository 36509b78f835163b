import type { FaultKind } from "../../sandbox/faults.ts";

/** Fault of a network, as one row of the matrix of delivery tests. */
export interface FaultRow {
  readonly name: string;
  /**
   * Kind of the fault in the sandbox. Undefined if the network cannot be reached at all, or if only its credential
   * changes.
   */
  readonly kind?: FaultKind;
  /** Value of the network's Retry-After header, in seconds. */
  readonly retryAfter?: number;
  /**
   * Why this fault leaves the outcome unknown at a network that does not recognise repeats: there was no answer, or the
   * answer's body is useless, which some networks need as a proof.
   */
  readonly doubtful?: "unanswered" | "body";
  /** True if the message arrives in spite of the fault. */
  readonly arrives?: true;
  /** True if the network's host name does not resolve. */
  readonly hasNoAddress?: true;
  /** Cause that resumes the channel if this fault suspends it: an operator, or a changed credential. */
  readonly endsBy?: "by_hand" | "credential_changed";
}

export const FAULT_ROWS: readonly FaultRow[] = [
  { name: "429 with Retry-After", kind: "429", retryAfter: 3 },
  { name: "429 without Retry-After", kind: "429" },
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
