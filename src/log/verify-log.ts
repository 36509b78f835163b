import type { CheckpointStore } from "eventstore-lite/proof";
import type { DataOf, LogStore } from "../../events/event-types-and-codec.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { errorFields } from "../platform/logger.ts";
import { classifyError } from "./classify-store-error.ts";
import { type EventMetadata, STREAMS, type StateContext } from "./event-log.ts";
import { compare, type Compared, type KnownHead, readKnownHeads } from "./sign-and-compare-checkpoints.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** Number of threads of a verification in a running service: one core at most, since the others are for requests. */
const THREADS = 1;

export interface VerificationProgress {
  /** Name of the caller who started the verification. */
  readonly caller: string | undefined;
  /** Time at which the verification started, ISO 8601. */
  readonly started_at: string;
  /** Number of events that were verified so far. */
  readonly checked: number;
  /** Position at which the log ended when the verification began. */
  readonly position: number;
}

/** Verifies the log while the service runs. The result is an event (`LogVerified`). */
export type LogVerifier = ReturnType<typeof createLogVerifier>;

export function createLogVerifier({ eventLog, clock, logger, announce }: StateContext, checkpoints: CheckpointStore) {
  const { store } = eventLog;
  let progress: VerificationProgress | undefined;

  const verify = async (metadata: EventMetadata): Promise<void> => {
    let verified: VerifiedLog | undefined;
    try {
      const heads = await readKnownHeads(checkpoints, undefined, undefined);
      // Pages and the log show this name. It replaces the checkpoint's path, which would disclose where the service is
      // installed.
      const known = heads.map((head) => ({ ...head, what: "the checkpoint beside the log" }));
      verified = await verifyLog(store, known, {
        threads: THREADS,
        onProgress: (checked) => (progress = progress && { ...progress, checked }),
      });
      const data = toVerifiedData(verified);
      // The result is logged too, because a broken log may not accept the event.
      if (!verified.isWhole) logger.error("the log is broken", { ...data });
      await eventLog.append(STREAMS.log, [{ type: "LogVerified", data }], metadata);
      if (verified.isWhole) return;
      await announce(`the log is broken: ${data.fault}`, `broken/${data.broken_position ?? data.position}`);
    } catch (fault) {
      // The service is stopping and has closed the log, so the verification ends without a result.
      if (classifyError(fault) === "closed") return;
      const what = verified === undefined ? "the log could not be verified" : "a verification could not be recorded";
      logger.error(what, errorFields(fault));
    } finally {
      progress = undefined;
    }
  };

  return {
    /** Returns the progress of the verification; undefined if none runs. */
    get progress(): VerificationProgress | undefined {
      return progress;
    },
    /**
     * Starts a verification in the caller's name; `done` resolves once its event is appended. Undefined if another
     * verification runs.
     */
    async start(metadata: EventMetadata) {
      if (progress !== undefined) return undefined;
      const begun = { caller: metadata.caller, started_at: isoTime(clock()), checked: 0, position: 0 };
      // Set before the first await, so that only one of two simultaneous callers begins a verification.
      progress = begun;
      try {
        progress = { ...begun, position: (await store.head()).position };
      } catch (fault) {
        progress = undefined;
        throw fault;
      }
      return { progress, done: verify(metadata) };
    },
  };
}

function toVerifiedData({ verification, compared, isWhole }: VerifiedLog): DataOf<"LogVerified"> {
  const { head, checked, fault } = verification;
  const known = { position: head.position, hash: head.hash, checked };
  if (isWhole) return { ...known, result: "whole" };
  const denied = compared.find((one) => one.fault !== undefined)?.fault;
  const sentence = fault === undefined ? denied : `the chain is broken at position ${fault.position}: ${fault.reason}`;
  return { ...known, result: "broken", ...omitUndefined({ fault: sentence, broken_position: fault?.position }) };
}

/** Result of verifying a log. `isWhole`: the hash chain is unbroken, and the log extends all known heads. */
export type VerifiedLog = Awaited<ReturnType<typeof verifyLog>>;

/**
 * Verifies a log: recomputes its hash chain, and compares it with heads (position and hash) that are known from outside
 * the log, such as the checkpoint beside it.
 */
export async function verifyLog(
  store: LogStore,
  known: readonly KnownHead[],
  options: { readonly threads?: number; readonly onProgress?: (checked: number) => void },
) {
  const verification = await store.verify(options);
  const compared: Compared[] = [];
  for (const one of known) compared.push(await compare(store, one));
  const isWhole = verification.ok && compared.every(({ fault }) => fault === undefined);
  return { verification, compared, isWhole };
}
