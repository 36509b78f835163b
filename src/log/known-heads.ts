import type { KeyObject } from "node:crypto";
import {
  CheckpointRefused,
  openCheckpoint,
  readCheckpointFile,
  type Checkpoint,
  type EventStore,
} from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { contradict } from "./checkpoint.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";

/** A checkpoint that the log is compared with, as its file held it. */
export interface KnownHead {
  /** How it is called in a sentence. */
  readonly what: string;
  /** Undefined when there is no such file. */
  readonly note: string | undefined;
  /** What it must be signed with; undefined when not given. */
  readonly publicKey: KeyObject | undefined;
}

/** What came of comparing the log with one head. `fault` is a sentence; without one, the log extends `checkpoint`. */
export type Compared =
  | { readonly what: string; readonly checkpoint: Checkpoint; readonly fault?: undefined }
  | { readonly what: string; readonly fault: string };

/**
 * Reads the log's own checkpoint, where there is one, and that of `headFile`. To be called before the log is read:
 * a service that runs meanwhile writes newer ones. A key that is given is that of the head: the checkpoint of an import
 * is signed by a key of its own.
 */
export async function readKnownHeads(
  checkpoints: CheckpointStore,
  headFile: string | undefined,
  given: KeyObject | undefined,
): Promise<KnownHead[]> {
  const own = (await checkpoints.findKey())?.publicKey;
  const heads: KnownHead[] = [];
  const note = await readNote(checkpoints.read());
  if (note !== undefined) {
    const publicKey = headFile === undefined ? (given ?? own) : (own ?? given);
    heads.push({ what: `the checkpoint ${checkpoints.checkpoint}`, note, publicKey });
  }
  if (headFile !== undefined) {
    const head = await readNote(readCheckpointFile(headFile));
    heads.push({ what: `the head ${headFile}`, note: head, publicKey: given ?? own });
  }
  return heads;
}

async function readNote(reading: Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await reading;
  } catch (fault) {
    // It is no text, and thus no checkpoint: as any other file that is none, it is reported with the rest.
    if (fault instanceof CheckpointRefused) return "";
    throw fault;
  }
}

/** Whether the log is the one of that head, and holds its position with its hash. */
export async function compare(store: EventStore<Event>, { what, note, publicKey }: KnownHead): Promise<Compared> {
  if (note === undefined) return { what, fault: `${what} is not there` };
  if (publicKey === undefined) return { what, fault: `${what} cannot be checked without the key: give --public-key` };
  let checkpoint: Checkpoint;
  try {
    checkpoint = openCheckpoint(note, publicKey);
  } catch (fault) {
    if (fault instanceof CheckpointRefused) return { what, fault: `${what} proves nothing: ${fault.message}` };
    throw fault;
  }
  const loss = await contradict(store, checkpoint, what);
  return loss === undefined ? { what, checkpoint } : { what, fault: loss.sentence };
}
