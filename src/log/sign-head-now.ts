import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import { findLoss, signHead } from "./checkpoint.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";

/** A signed head, as a note; or a sentence that says what the log denies of its last checkpoint. */
export type SignedHead = { readonly note: string } | { readonly loss: string };

/** Signs the log's position and hash as they are now: unless the log contradicts what was signed before. */
export async function signHeadNow(
  store: EventStore<Event>,
  checkpoints: CheckpointStore,
  clock: Clock,
): Promise<SignedHead> {
  const key = await checkpoints.loadKey();
  // A key that signed two histories of one log would prove neither.
  const loss = await findLoss(store, checkpoints, key);
  if (loss !== undefined) return { loss: loss.sentence };
  return { note: await signHead(store, await store.head(), key, clock) };
}
