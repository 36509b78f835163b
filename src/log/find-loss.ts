import {
  CheckpointRefused,
  openCheckpoint,
  readCheckpointFile,
  type Checkpoint,
  type EventStore,
  type SigningKey,
} from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { contradict, type Loss } from "./contradict.ts";

/**
 * What the log denies of the checkpoint in `file`: that the log holds its position with its hash, that the
 * chain is whole from there on. Undefined when all is well, or when there is no checkpoint yet.
 *
 * The service writes one every few seconds, so that little is left to verify after it, also when it was killed.
 */
export async function findLoss(
  store: EventStore<Event>,
  file: string,
  { publicKey }: SigningKey,
): Promise<Loss | undefined> {
  let checkpoint: Checkpoint;
  try {
    const note = await readCheckpointFile(file);
    if (note === undefined) return undefined;
    checkpoint = openCheckpoint(note, publicKey);
  } catch (fault) {
    if (!(fault instanceof CheckpointRefused)) throw fault;
    return { sentence: `${file}: ${fault.message}`, newEvents: { reason: "unknown" } };
  }
  // That of an empty log knew nothing, and another may have been imported in its place.
  const denied = checkpoint.position === 0 ? undefined : await contradict(store, checkpoint, `the checkpoint ${file}`);
  return denied ?? (await findBreak(store, checkpoint));
}

async function findBreak(store: EventStore<Event>, { position, hash }: Checkpoint): Promise<Loss | undefined> {
  const { fault } = await store.verify({ from: position + 1 });
  if (fault === undefined) return undefined;
  return {
    sentence: `the chain is broken at position ${fault.position}: ${fault.reason}`,
    newEvents: {
      reason: "broken_chain",
      expected_position: position,
      expected_hash: hash,
      broken_position: fault.position,
    },
  };
}
