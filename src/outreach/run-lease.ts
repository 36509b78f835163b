import { takeLease, type HeldLease } from "../log/lease.ts";
import { ROLES } from "../log/role.ts";
import type { OutreachContext } from "./context.ts";

/** Under this lease runs are made, one at a time over all instances; a dead one does not block the next run for long. */
const TERMS = { name: ROLES.run, ttlMs: 30_000, renewMs: 10_000 };

/** Longer than one request to send takes. */
export const SEND_MS_MAX = 20_000;

/**
 * Takes the lease for one run, which is a holder of its own, so that two triggers in one process exclude each other too.
 * Undefined while another holds it. `steal`: that one is known to be dead.
 */
export function takeRunLease(context: OutreachContext, runId: string, steal: boolean): Promise<HeldLease | undefined> {
  return takeLease(context, { ...TERMS, holder: `${context.holder}/${runId}`, steal });
}
