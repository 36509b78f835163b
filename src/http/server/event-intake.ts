import { isStoreError, type IdempotencyKey } from "eventstore-lite";
import { classifyError } from "../../log/classify-store-error.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent, eventAt } from "../../log/event-log.ts";
import { errorFields, type Logger } from "../../platform/logger.ts";
import { BODY_BYTES_MAX } from "./body.ts";
import { appendFault, keyedAppendFault } from "./problem.ts";

/** Metadata of the request that appends an event, and its key. `key` is undefined without an `Idempotency-Key`. */
export interface AppendedBy {
  readonly metadata: EventMetadata;
  readonly key: IdempotencyKey | undefined;
}

/** Ids of appended events, and the position of the first of them. */
export interface Recorded {
  readonly first: number;
  readonly ids: readonly string[];
}

/**
 * Snapshot that is written to test if the disk has room again; it adds no event to the log. It is as large as the
 * largest body, because smaller writes may still fit into a gap.
 */
const PROBE = {
  name: "health-probe",
  snapshot: { version: 1, position: 0, state: " ".repeat(BODY_BYTES_MAX) },
} as const;

export type EventIntake = ReturnType<typeof createEventIntake>;

/**
 * Creates the intake, which appends the events of requests to the log. `askKeys` checks the key store; `isAlive` is
 * false if the log failed or is unreachable. The operator's log gets one line when requests are refused, and one when
 * that ends.
 */
export function createEventIntake(
  eventLog: EventLog,
  askKeys: () => Promise<unknown>,
  isAlive: () => boolean,
  logger: Logger,
) {
  /**
   * Types of events that were refused. Events without personal data need no key store, so other types may still be
   * accepted.
   */
  const refusedTypes = new Set<string>();
  let isSaid = false;
  /**
   * True from when an append found the disk full until a large write succeeds. Small appends may be accepted meanwhile.
   */
  let isFull = false;
  let isProbing = false;

  const recover = (): void => {
    if (isSaid) logger.info("requests are recorded again");
    refusedTypes.clear();
    isSaid = false;
    isFull = false;
  };
  /**
   * Tests if the log accepts a write as large as any request. If so, the log counts as writable again. Throws any fault
   * other than a full disk.
   */
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
    // Tests in the background if the disk has room again. The test's error is ignored here, because the refused request
    // was already logged.
    if (isFull && refusedTypes.size === 0) void probe().catch(() => undefined);
  };
  const refuse = (fault: unknown, type: string, key: IdempotencyKey | undefined): never => {
    if (classifyError(fault) === "full") {
      refusedTypes.add(type);
      if (isStoreError(fault, "full")) isFull = true;
      if (!isSaid) {
        logger.warn("requests are refused: they cannot be recorded", errorFields(fault));
        isSaid = true;
      }
    }
    // With an idempotency key, an earlier request may have been recorded, so the problem must not say that nothing was.
    throw key === undefined ? appendFault(fault) : keyedAppendFault(fault);
  };

  return {
    /**
     * Appends a request's events; a repeat with the same key returns the ids and the position of the first request.
     * `isChecked` skips the schema check. Throws Problem or the store's fault; gives up if the database stays
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
    /**
     * Returns false while the log refuses appends. After a refusal it probes the log, so that an idle service recovers
     * too.
     */
    async isWritable(): Promise<boolean> {
      if (!isAlive()) return false;
      if (refusedTypes.size === 0) return true;
      await probe();
      return refusedTypes.size === 0;
    },
  };
}

/**
 * Returns the position and id of the event under an idempotency key: the one just appended or, for a repeat, that of
 * the first request.
 */
async function findFirst(eventLog: EventLog, appended: Recorded & { readonly repeated: boolean }): Promise<Recorded> {
  const { first, repeated } = appended;
  return repeated ? { first, ids: [(await eventAt(eventLog.store, first)).id] } : appended;
}
