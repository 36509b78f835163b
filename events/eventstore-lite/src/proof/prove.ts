import type { KeyObject } from "node:crypto";
import { openCheckpoint, type Checkpoint } from "./checkpoint.ts";
import { CheckpointRefused } from "../errors.ts";
import type { EventStore } from "../event-store-interface.ts";
import { createLogTree } from "./log-tree.ts";
import { formatProof, openProof } from "./event-proof.ts";
import { provesConsistency, type TreeHead } from "./merkle-tree.ts";

/**
 * Proves that the log holds an event at `position`, with a checkpoint that `publicKey` signed; returns a tlog-proof.
 * Throws {@link CheckpointRefused} if the log is not the one that was signed.
 */
export async function proveEvent(
  log: EventStore,
  position: number,
  note: string,
  publicKey: KeyObject,
): Promise<string> {
  const tree = createLogTree(log);
  const { position: size } = openCheckpoint(note, publicKey);
  const write = async (): Promise<string> => {
    for await (const [event] of log.readCanonical({ from: position, to: position })) {
      if (event === undefined) break;
      const proof = formatProof({ event, position, hashes: await tree.at(size).inclusion(position - 1), note });
      openProof(proof, publicKey);
      return proof;
    }
    throw new CheckpointRefused("malformed", `the log has no event at position ${position}`);
  };
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof CheckpointRefused)) throw error;
    // The root of the stored tiles is not the signed one. The tiles may be wrong although the log is right, so they are
    // rebuilt once.
    await tree.forget();
    return write();
  }
}

/**
 * Proves that the newer of two checkpoints holds all events of the older one. Returns the hashes, or why there is no
 * proof.
 */
export async function proveExtension(
  log: EventStore,
  heads: readonly Checkpoint[],
): Promise<readonly Uint8Array[] | string> {
  const [older, newer] = heads.toSorted((a, b) => a.position - b.position);
  if (older?.root === undefined || newer?.root === undefined) return "a head without a Merkle root: sign another one";
  if (older.origin !== newer.origin) return `the heads are of two logs: ${older.origin} and ${newer.origin}`;
  const { position: end } = await log.head();
  if (newer.position > end) return `the log ends at position ${end}, before the newer head's ${newer.position}`;
  const proof = await createLogTree(log).at(newer.position).consistency(older.position);
  const headOf = ({ position, root = "" }: Checkpoint): TreeHead => ({
    size: position,
    root: Buffer.from(root, "hex"),
  });
  if (older.position === 0 || provesConsistency(headOf(older), headOf(newer), proof)) return proof;
  return "the log does not extend the older head to the newer one: one of them is of another history";
}
