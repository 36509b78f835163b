import type { KeyObject } from "node:crypto";
import { CheckpointRefused, openCheckpoint, openProof, proveExtension, type Cosigner } from "eventstore-lite";
import type { LogStore } from "../../events/catalog.ts";

/**
 * Opens a C2SP tlog-proof. Returns the event in it, its place and its signed head, or a sentence that says why it
 * proves nothing.
 */
export function openEventProof(proof: string, key: KeyObject, witness: Cosigner | undefined) {
  const found = catchRefusal(() => openProof(proof, key, witness));
  if (typeof found === "string") return found;
  const { event, ...rest } = found;
  const [, stream = "", , id = "", type = "", timeMs = "", data = ""] = Buffer.from(event).toString().split("\n");
  return { ...rest, stream, id, type, recordedMs: Number(timeMs), data: JSON.parse(data) as unknown };
}

/**
 * Returns the hashes that prove that the newer one of two signed heads extends the older one, or a sentence that denies
 * it.
 */
export async function proveConsistency(store: LogStore, notes: readonly string[], key: KeyObject) {
  const heads = catchRefusal(() => notes.map((note) => openCheckpoint(note, key)));
  return typeof heads === "string" ? heads : proveExtension(store, heads);
}

/** Returns the result, or a sentence that says why the input proves nothing. */
function catchRefusal<Result>(work: () => Result): Result | string {
  try {
    return work();
  } catch (fault) {
    if (fault instanceof CheckpointRefused) return fault.message;
    throw fault;
  }
}
