import type { EventStore, NewEvent } from "../store.ts";
import type { Checkpoint } from "./checkpoint.ts";

/**
 * How a log denies a checkpoint: `other-log`, it is of another one; `lost-tail`, the log ends before the checkpoint's
 * position, at `position`; `other-history`, it holds another event at `position`, that of the checkpoint, so that
 * something was altered there or before.
 */
export interface Contradiction {
  readonly kind: "other-log" | "lost-tail" | "other-history";
  readonly position: number;
}

/**
 * Compares a log, whose checkpoints are named `origin`, with a checkpoint. Undefined when the log holds all that the
 * checkpoint knew, and only more: so does a log that was made by importing that one, whatever its name is.
 * Whether the chain up to there is whole is for `verify` to say.
 */
export async function contradictionOf<E extends NewEvent>(
  store: EventStore<E>,
  origin: string,
  checkpoint: Checkpoint,
): Promise<Contradiction | undefined> {
  const isOurs = checkpoint.origin === origin;
  const hash = await store.hashAt(checkpoint.position);
  // The hash covers all events up to there. Without events, all logs are the same.
  if (hash === checkpoint.hash && (isOurs || checkpoint.position > 0)) return undefined;
  if (!isOurs) return { kind: "other-log", position: 0 };
  const { position } = await store.head();
  // A position within the log that it does not hold was taken out, and is found by verifying.
  return position < checkpoint.position
    ? { kind: "lost-tail", position }
    : { kind: "other-history", position: checkpoint.position };
}
