import { VersionConflict, type Appended, type IdempotencyKey } from "eventstore-lite";
import type { EventMetadata, NewEvent, StateContext } from "./event-log.ts";
import { fenced, type Fenced, type HeldLease } from "./leases-and-roles.ts";
import { ServiceError } from "../platform/service-error.ts";
import { backoffMs } from "../platform/clock-ids-and-timers.ts";

/** The outcome of a decision: events to append (possibly none), or a refusal. */
export type AppendDecision<Refusal> = { readonly events: readonly NewEvent[] } | { readonly refusal: Refusal };

/** Result of a decision: its events and their append, which is undefined without events; or the refusal. */
export type Handled<Refusal> =
  | { readonly events: readonly NewEvent[]; readonly appended: (Appended & { ids: readonly string[] }) | undefined }
  | { readonly refusal: Refusal };

export interface HandleOptions extends Partial<IdempotencyKey> {
  readonly metadata: EventMetadata;
  /** Lease that guards the append: it is refused once another holder has the lease. */
  readonly lease?: HeldLease;
  /** Maximum number of times that `decide` is called before the append fails as busy; default: {@link ATTEMPTS_MAX}. */
  readonly attempts?: number;
}

/**
 * Maximum number of times that one call decides on the state and tries to append. Of several callers that compete, one
 * succeeds each time, so a few tries suffice unless there is a fault.
 */
export const ATTEMPTS_MAX = 5;

/**
 * Backoff between two decisions after a version conflict. It doubles each time, with full jitter, so that competing
 * callers separate.
 */
const BACKOFF = { baseMs: 10, factor: 2, maxMs: 1_000 };

/**
 * Decides on the newest state, appends the decided events and resolves once the projections hold them. Decides again on
 * a version conflict, or if the lease had expired but is still free. Throws a ServiceError (busy) after too many
 * conflicts.
 */
export async function handle<Refusal = never>(
  { eventLog, projector, sleep, random }: StateContext,
  stream: string,
  /**
   * Pure function that decides by the projector's states, which reach at least to the stream's head. The append expects
   * the stream's version in the store.
   */
  decide: () => AppendDecision<Refusal>,
  { metadata, lease, attempts = ATTEMPTS_MAX, ...key }: HandleOptions,
): Promise<Handled<Refusal>> {
  const decideAndAppend = async (fence: Fenced): Promise<Handled<Refusal>> => {
    const { version, position } = await eventLog.store.streamHead(stream);
    await projector.until(position);
    const decision = decide();
    if ("refusal" in decision) return decision;
    const { events } = decision;
    if (events.length === 0) return { events, appended: undefined };
    const appended = await eventLog.append(stream, events, metadata, { ...key, ...fence, expected: version });
    await projector.until(appended.last);
    return { events, appended };
  };
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      return await fenced(lease, decideAndAppend);
    } catch (fault) {
      if (!(fault instanceof VersionConflict)) throw fault;
      if (attempt < attempts) await sleep(backoffMs(attempt, random(), BACKOFF), NEVER);
    }
  }
  throw new ServiceError("busy", `others appended to ${stream} during each of ${attempts} attempts; nothing was done`);
}

/**
 * Appends events that need no decision, and resolves once the projections hold them. Throws what the store's append
 * throws.
 */
export async function record(
  { eventLog, projector }: StateContext,
  stream: string,
  events: readonly NewEvent[],
  { metadata, lease, ...conditions }: Omit<HandleOptions, "attempts"> & Fenced,
) {
  const appended = await fenced(lease, (fence) =>
    eventLog.append(stream, events, metadata, { ...conditions, ...fence }),
  );
  await projector.until(appended.last);
  return appended;
}

const NEVER = new AbortController().signal;
