import type { KeyObject } from "node:crypto";
import { isStoreError } from "eventstore-lite";
import { serveWitness } from "eventstore-lite/proof";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";

interface WitnessOptions {
  /** Folder with the witness's key, and with the heads that it has cosigned. */
  readonly folder: string;
  /** Name of the witness in its cosignatures. */
  readonly name: string;
  readonly logKeys: readonly KeyObject[];
  /** True to start the witness although the record of the heads that it has cosigned is gone. */
  readonly mayForget: boolean;
  readonly host: string;
  /** Port of the witness; 0 for any free port. */
  readonly port: number;
}

/** Answer of a witness to a submitted head: the HTTP status, and the log's name as the head gives it. */
export interface AnsweredHead {
  readonly status: number;
  readonly head: string;
}

interface WitnessListener {
  readonly answered: (one: AnsweredHead) => void;
  /** The server calls this, with a sentence for the operator, if the witness failed at a request. */
  readonly failed: (sentence: string) => void;
}

/**
 * Serves a witness of C2SP tlog-witness until it is disposed. Throws a ServiceError (configuration) if the heads that
 * its key cosigned are gone, or an error of the port.
 */
export async function serveHeads(options: WitnessOptions, listener: WitnessListener) {
  try {
    return await serveWitness({ ...options, clock: systemClock }, listener);
  } catch (fault) {
    if (!isStoreError(fault, "unusable")) throw fault;
    const remedy =
      "With its key it would cosign a log that was rolled back. Put the file back; or move witness.pem away, and give " +
      "the logs the new key that is printed; or, to begin with this key, add --accept-lost-memory";
    throw new ServiceError("configuration", `${fault.message}. ${remedy}`, { cause: fault });
  }
}
