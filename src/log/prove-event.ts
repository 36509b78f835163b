import {
  CheckpointRefused,
  createLogTree,
  formatProof,
  openCheckpoint,
  openProof,
  type EventStore,
  type SigningKey,
} from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import { signHeadNow, type SignedHead } from "./sign-head-now.ts";

/** A C2SP tlog-proof of the event at `position`, which the log holds; or what the log denies of its last checkpoint. */
export async function proveEvent(
  store: EventStore<Event>,
  checkpoints: CheckpointStore,
  clock: Clock,
  position: number,
): Promise<{ readonly proof: string } | Exclude<SignedHead, { note: string }>> {
  const key = await checkpoints.loadKey();
  const kept = await findCovering(checkpoints, key, position);
  const signed = kept === undefined ? await signHeadNow(store, checkpoints, clock) : { note: kept };
  if ("loss" in signed) return signed;
  const { note } = signed;
  const { position: size } = openCheckpoint(note, key.publicKey);
  const [event = new Uint8Array()] = await readEvent(store, position);
  const tree = createLogTree(store);
  const write = async (): Promise<{ readonly proof: string }> => {
    const hashes = await tree.at(size).inclusion(position - 1);
    const proof = formatProof({ event, position, hashes, note });
    openProof(proof, key.publicKey);
    return { proof };
  };
  try {
    return await write();
  } catch (fault) {
    if (!(fault instanceof CheckpointRefused)) throw fault;
    // Stored tiles may be wrong where the log is right: they are made again.
    await tree.forget();
    return write();
  }
}

/** The newest checkpoint of a tree that holds the event, a cosigned one first: a proof costs no new signature then. */
async function findCovering(
  checkpoints: CheckpointStore,
  { publicKey }: SigningKey,
  position: number,
): Promise<string | undefined> {
  for (const read of [checkpoints.readCosigned, checkpoints.read]) {
    try {
      const note = await read();
      if (note === undefined) continue;
      const known = openCheckpoint(note, publicKey);
      if (known.root !== undefined && known.position >= position) return note;
    } catch (fault) {
      if (!(fault instanceof CheckpointRefused)) throw fault;
    }
  }
  return undefined;
}

async function readEvent(store: EventStore<Event>, position: number): Promise<readonly Uint8Array[]> {
  for await (const events of store.readCanonical({ from: position, to: position })) return events;
  return [];
}
