import { VersionConflict, type Appended, type IdempotencyKey } from "eventstore-lite";
import type { EventMetadata, NewEvent, PartDeps } from "./event-log.ts";
import { fenced, type Fenced, type HeldLease } from "./lease.ts";
import { ServiceError } from "../platform/service-error.ts";
import { backoffMs } from "../platform/clock.ts";

/** What a decision comes to: events to append (none: nothing is left to do), or why there are none. */
export type AppendDecision<Refusal> = { readonly events: readonly NewEvent[] } | { readonly refusal: Refusal };

/** The result: the events that were decided; nothing was appended if there were none. */
export type Handled<Refusal> =
  | { readonly events: readonly NewEvent[]; readonly appended: (Appended & { ids: readonly string[] }) | undefined }
  | { readonly refusal: Refusal };

export interface HandleOptions extends Partial<IdempotencyKey> {
  readonly metadata: EventMetadata;
  /** Under which it is appended: refused once another holds it. */
  readonly lease?: HeldLease;
  /** How often it is decided at the most. Default: {@link ATTEMPTS_MAX}. */
  readonly attempts?: number;
}

export type HandleDeps = Pick<PartDeps, "eventLog" | "projector" | "sleep" | "random">;

/** Others that decide at the same time win in turn, so a few attempts are enough for all but a fault. */
export const ATTEMPTS_MAX = 5;

/** Before the second attempt; twice as long before each further one, with full jitter, so that rivals come apart. */
const BACKOFF = { baseMs: 10, factor: 2, maxMs: 1_000 };

/**
 * Decides on the newest state and appends what was decided. Retries on a version conflict, or when the lease expired and
 * no other holder took it.
 *
 * `decide` is pure and reads the projector's states, which reach at least to the stream's head: the version that the
 * append expects is the stream's own, as the store knows it. Resolves when the projections hold what was appended.
 * Throws a ServiceError (busy) when the stream moved on at every attempt, and what the store's append throws.
 */
export async function handle<Refusal = never>(
  { eventLog, projector, sleep, random }: HandleDeps,
  stream: string,
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

/** Appends what needs no decision, and resolves when the projections hold it. Throws what the store's append throws. */
export async function record(
  { eventLog, projector }: Pick<HandleDeps, "eventLog" | "projector">,
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
