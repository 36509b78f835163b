import { contradictionOf, type Checkpoint, type EventStore } from "eventstore-lite";
import type { DataOf, Event } from "../../events/catalog.ts";
import { originOf } from "./origin.ts";

/** How the log denies a checkpoint, as a sentence and as the facts of it. */
export interface Loss {
  readonly sentence: string;
  readonly newEvents: Omit<DataOf<"LogLossAccepted">, "found_position" | "found_hash">;
}

/** Compares the log with a checkpoint whose signature was found good. `what` names the checkpoint in the sentence. */
export async function contradict(
  store: EventStore<Event>,
  checkpoint: Checkpoint,
  what: string,
): Promise<Loss | undefined> {
  const contradiction = await contradictionOf(store, originOf(store), checkpoint);
  if (contradiction === undefined) return undefined;
  const expected = { expected_position: checkpoint.position, expected_hash: checkpoint.hash };
  const { kind, position } = contradiction;
  if (kind === "other-log") {
    const { position: end } = await store.head();
    const orCut = checkpoint.position > end ? " (or an import of it that lacks its end)" : "";
    const sentence = `${what} is of another log, ${checkpoint.origin}, and this is ${originOf(store)}${orCut}`;
    return { sentence, newEvents: { reason: "other_log", ...expected } };
  }
  if (kind === "lost-tail") {
    return {
      sentence: `the log ends at position ${position}, but ${what} knew ${checkpoint.position} events: all from position ${position + 1} on are lost`,
      newEvents: { reason: "lost_tail", ...expected },
    };
  }
  return {
    sentence: `the log holds another history than ${what} knew: it was altered at position ${position} or before`,
    newEvents: { reason: "other_history", ...expected },
  };
}
