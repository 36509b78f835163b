import type { KeyObject } from "node:crypto";
import {
  CheckpointRefused,
  openCheckpoint,
  openProof,
  proveExtension,
  type WitnessConfig,
} from "eventstore-lite/proof";
import type { LogStore } from "../../events/event-types-and-codec.ts";

/**
 * Opens a C2SP tlog-proof of an event. Returns what the proof proves, or a sentence that says why it proves nothing.
 */
export function openEventProof(proof: string, key: KeyObject, witness: WitnessConfig["cosigner"] | undefined) {
  return catchRefusal(() => openProof(proof, key, witness));
}

/**
 * Returns the hashes that prove that the newer one of two signed heads extends the older one, or a sentence that denies
 * it.
 */
export async function proveConsistency(store: LogStore, notes: readonly string[], key: KeyObject) {
  const heads = catchRefusal(() => notes.map((note) => openCheckpoint(note, key)));
  return typeof heads === "string" ? heads : proveExtension(store, heads);
}

/** Returns the result of opening a proof, or a sentence that says why the input proves nothing. */
function catchRefusal<Result>(work: () => Result): Result | string {
  try {
    return work();
  } catch (fault) {
    if (fault instanceof CheckpointRefused) return fault.message;
    throw fault;
  }
}
