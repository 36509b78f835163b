import { StoreFull, type Appended, type IdempotencyKey } from "eventstore-lite";
import { classifyError } from "../../log/error-kind.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent, eventAt } from "../../log/event-log.ts";
import { errorFields, type Logger } from "../../platform/logger.ts";
import { BODY_BYTES_MAX } from "./body.ts";
import { appendFault, keyedAppendFault } from "./problem.ts";

/** The request that an event comes from; `key` undefined: it came without an `Idempotency-Key`. */
export interface AppendedBy {
  readonly metadata: EventMetadata;
  readonly key: IdempotencyKey | undefined;
}

/** Where an event is, and which one. */
export type Recorded = Pick<Awaited<ReturnType<EventLog["append"]>>, "first" | "ids">;

/** A write that leaves no event behind, as large as the largest body: what is smaller may still find a gap to fit in. */
const PROBE = {
  name: "health-probe",
  snapshot: { version: 1, position: 0, state: " ".repeat(BODY_BYTES_MAX) },
} as const;

export type EventIntake = ReturnType<typeof createEventIntake>;

/**
 * The event log, for what requests bring. `askKeys` asks the key store, without which nothing personal gets into the log; `isAlive`: false while the log is out of
 * reach, and once it failed for good. An outage is one line of the operator's log, and its end another.
 */
export function createEventIntake(
  eventLog: EventLog,
  askKeys: () => Promise<unknown>,
  isAlive: () => boolean,
  logger: Logger,
) {
  /** That the log takes others says nothing of these: only what is personal needs the key store. */
  const refusedTypes = new Set<string>();
  let isSaid = false;
  /** The disk is full, or was: what is small may be accepted while what is large is refused. */
  let isFull = false;
  let isProbing = false;

  const recover = (): void => {
    if (isSaid) logger.info("requests are recorded again");
    refusedTypes.clear();
    isSaid = false;
    isFull = false;
  };
  /** Recovers once the log takes what is as large as any request. Throws the fault if it is unexpected. */
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
    // The caller waits for no probe, and each of its faults has its line already.
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
    // Under a key an earlier request may have been recorded.
    throw key === undefined ? appendFault(fault) : keyedAppendFault(fault);
  };

  return {
    /**
     * Appends the events of a request. A repeated key gives the first ones' ids and position. Throws Problem, or as the
     * store does. No caller waits for a database that is away until the connection is closed without an answer.
     * `isChecked`: the event fits its schema, since the request's body fitted its own.
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
    /** False while the log refuses appends. It is asked again after a refusal, so that an idle service recovers too. */
    async isWritable(): Promise<boolean> {
      if (!isAlive()) return false;
      if (refusedTypes.size === 0) return true;
      await probe();
      return refusedTypes.size === 0;
    },
  };
}

/** What was appended under a key, now or by an earlier request. */
async function findFirst(eventLog: EventLog, appended: Recorded & Pick<Appended, "repeated">): Promise<Recorded> {
  const { first, repeated } = appended;
  return repeated ? { first, ids: [(await eventAt(eventLog.store, first)).id] } : appended;
}
