import { StoreFull, type Appended, type IdempotencyKey } from "eventstore-lite";
import { classifyError } from "../../log/error-kind.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent, eventAt } from "../../log/event-log.ts";
import { errorFields, type Logger } from "../../platform/logger.ts";
import { BODY_BYTES_MAX } from "./body.ts";
import { appendFault, keyedAppendFault } from "./problem.ts";

/** The request that an event comes from. `key` is undefined without an `Idempotency-Key`. */
export interface AppendedBy {
  readonly metadata: EventMetadata;
  readonly key: IdempotencyKey | undefined;
}

/** The first position and the ids of appended events. */
export type Recorded = Pick<Awaited<ReturnType<EventLog["append"]>>, "first" | "ids">;

/** A write that leaves no event behind, as large as the largest body: a smaller one may still fit into a gap. */
const PROBE = {
  name: "health-probe",
  snapshot: { version: 1, position: 0, state: " ".repeat(BODY_BYTES_MAX) },
} as const;

export type EventIntake = ReturnType<typeof createEventIntake>;

/**
 * Appends what requests bring to the event log. `askKeys` asks the key store, which personal data needs; `isAlive` is
 * false while the log is unreachable or has failed. The operator's log gets one line for an outage and one for its end.
 */
export function createEventIntake(
  eventLog: EventLog,
  askKeys: () => Promise<unknown>,
  isAlive: () => boolean,
  logger: Logger,
) {
  /** Types whose append was refused. Only personal data needs the key store, so other types may still be accepted. */
  const refusedTypes = new Set<string>();
  let isSaid = false;
  /** True after the disk was full: small writes may be accepted while large ones are refused. */
  let isFull = false;
  let isProbing = false;

  const recover = (): void => {
    if (isSaid) logger.info("requests are recorded again");
    refusedTypes.clear();
    isSaid = false;
    isFull = false;
  };
  /** Recovers once the log accepts a write as large as any request. Throws a fault that is unexpected. */
  const probe = async (): Promise<void> => {
    if (isProbing) return;
    isProbing = true;
    try {
      await askKeys();
      await eventLog.store.snapshots.save(PROBE.name, PROBE.snapshot);
      recover();
    } catch (fault) {
      if (classifyError(fault) !== "full") throw fault;
    } finally {
      isProbing = false;
    }
  };
  const noteSuccess = (type: string): void => {
    if (!isFull && refusedTypes.has(type)) return recover();
    refusedTypes.delete(type);
    // No caller waits for this probe, and each of its faults has a log line already.
    if (isFull && refusedTypes.size === 0) void probe().catch(() => undefined);
  };
  const refuse = (fault: unknown, type: string, key: IdempotencyKey | undefined): never => {
    if (classifyError(fault) === "full") {
      refusedTypes.add(type);
      if (fault instanceof StoreFull) isFull = true;
      if (!isSaid) {
        logger.warn("requests are refused: they cannot be recorded", errorFields(fault));
        isSaid = true;
      }
    }
    // An earlier request with this key may have been recorded.
    throw key === undefined ? appendFault(fault) : keyedAppendFault(fault);
  };

  return {
    /**
     * Appends a request's events; a repeated key returns the first ones' ids and position. `isChecked` skips the check
     * of an event whose request was checked. Throws Problem, or as the store does; gives up on a database that stays
     * unreachable.
     */
    append(
      newEvents: readonly NewEvent[],
      { metadata, key }: AppendedBy,
      { stream = STREAMS.requests, isChecked = false }: { readonly stream?: string; readonly isChecked?: boolean } = {},
    ): Promise<Recorded> {
      const options = { ...key, isChecked, givesUpInDoubt: true };
      const { type } = newEvents[0]!;
      const appended = eventLog.append(stream, newEvents, metadata, options).then(
        (recorded) => {
          if (isSaid || refusedTypes.size > 0) noteSuccess(type);
          return recorded;
        },
        (fault: unknown) => refuse(fault, type, key),
      );
      return key === undefined ? appended : appended.then((one) => findFirst(eventLog, one));
    },
    /** False while the log refuses appends. Probes the log after a refusal, so that an idle service recovers too. */
    async isWritable(): Promise<boolean> {
      if (!isAlive()) return false;
      if (refusedTypes.size === 0) return true;
      await probe();
      return refusedTypes.size === 0;
    },
  };
}

/** Returns what was appended under a key, now or by an earlier request. */
async function findFirst(eventLog: EventLog, appended: Recorded & Pick<Appended, "repeated">): Promise<Recorded> {
  const { first, repeated } = appended;
  return repeated ? { first, ids: [(await eventAt(eventLog.store, first)).id] } : appended;
}
