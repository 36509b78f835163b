import type { DispatchResult } from "./network.ts";
import { NetworkFault } from "./network-fault.ts";

/**
 * What a call without an answer means for a dispatch. Without de-duplication by the network only certain
 * non-delivery may be repeated. Anything but a {@link NetworkFault} is a defect of ours and thrown on.
 */
export function resultOfFault(fault: unknown, network: { readonly deduplicates: boolean }): DispatchResult {
  if (!(fault instanceof NetworkFault)) throw fault;
  const detail = fault.message;
  if (fault.kind === "forbidden") return { outcome: "refused", detail, channel: true };
  if (fault.certainlyNotSent) return { outcome: "retryable", detail };
  return network.deduplicates
    ? { outcome: "retryable", detail, mayHaveArrived: true }
    : { outcome: "in_doubt", detail };
}

/** The same for a check, which always ends in a sentence. */
export function checkOfFault(fault: unknown): {
  readonly ok: boolean;
  readonly detail: string;
} {
  if (!(fault instanceof NetworkFault)) throw fault;
  return { ok: false, detail: fault.message };
}
