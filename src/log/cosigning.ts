import type { KeyObject } from "node:crypto";
import {
  CheckpointRefused,
  openCheckpoint,
  requestCosignature,
  startCosigning,
  type Checkpoint,
  type CheckpointStore,
  type WitnessConfig,
  type Witnessed,
} from "eventstore-lite/proof";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { createSafeFetch, NetworkFault } from "../networks/safe-fetch.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { openNote } from "./sign-and-compare-checkpoints.ts";

/** Timeout of a request to a witness, in ms. A slow witness delays only its own next answer. */
const TIMEOUT_MS = 5_000;

/**
 * Asks a witness to cosign a signed head of the log. `old`: number of events in the last head that the witness is
 * believed to have cosigned.
 */
export async function askWitness(
  store: LogStore,
  witness: WitnessConfig,
  head: { readonly note: string; readonly checkpoint: Checkpoint },
  old: number,
  stopping?: AbortSignal,
): Promise<Witnessed> {
  const send = createSafeFetch({ allowedOrigins: [witness.url] });
  const post = async (url: string, body: string, signal: AbortSignal | undefined) => {
    try {
      const { status, headers, text } = await send(url, { method: "POST", body, timeoutMs: TIMEOUT_MS, signal });
      return { status, type: headers.get("content-type"), text };
    } catch (fault) {
      if (fault instanceof NetworkFault) return fault.message;
      throw fault;
    }
  };
  return requestCosignature(store, witness, head, old, post, stopping);
}

export interface CosigningDeps {
  readonly store: LogStore;
  readonly checkpoints: CheckpointStore;
  readonly publicKey: KeyObject;
  readonly witness: WitnessConfig;
  readonly logger: Logger;
}

/** Offers the log's signed heads to a witness in the background, and logs its answers. */
export function cosignHeads({ store, checkpoints, publicKey, witness, logger }: CosigningDeps) {
  return startCosigning({
    async ask(note, signal) {
      const head = { note, checkpoint: openCheckpoint(note, publicKey) };
      return askWitness(store, witness, head, await cosignedPosition(checkpoints, publicKey), signal);
    },
    write: checkpoints.writeCosigned,
    report(witnessed) {
      if (witnessed.result === "cosigned") return logger.info("the witness cosigns again");
      const { result, detail } = witnessed;
      logger[result === "split" ? "error" : "warn"]("the witness did not cosign the head", { detail });
    },
    failed: (fault) => logger.warn("a head could not be cosigned", errorFields(fault)),
  });
}

/** Reads the position up to which a witness has cosigned the log; 0 if none has. */
export async function cosignedPosition(checkpoints: CheckpointStore, publicKey: KeyObject): Promise<number> {
  const known = await openNote(checkpoints.readCosigned(), publicKey);
  return known === undefined || known instanceof CheckpointRefused ? 0 : known.position;
}
