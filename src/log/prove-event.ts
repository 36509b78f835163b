import {
  CheckpointRefused,
  openCheckpoint,
  proveEvent as proveByNote,
  type EventStore,
  type SigningKey,
} from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import { signHeadNow, type SignedHead } from "./signed-heads.ts";

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
  return { proof: await proveByNote(store, position, signed.note, key.publicKey) };
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
