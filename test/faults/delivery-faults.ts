import type { FaultKind } from "../../sandbox/faults.ts";

/** A fault of a network, as the matrix of delivery knows it. */
export interface FaultRow {
  readonly name: string;
  /** Switched on at the sandbox; undefined: it is no answer of the network. */
  readonly kind?: FaultKind;
  /** Seconds. */
  readonly retryAfter?: number;
  /**
   * Where the network does not de-duplicate the outcome of a message is unknown: because there is no answer, or none
   * that tells; or because what is wrong is the body, which not every network needs.
   */
  readonly doubtful?: "unanswered" | "body";
  /** What it hits has arrived all the same. */
  readonly arrives?: true;
  /** The host name is not found. */
  readonly hasNoAddress?: true;
  /** It stops the channel as a whole, which goes on by this. */
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
