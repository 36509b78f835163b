import { existsSync } from "node:fs";
import { loadSigningKey, readCheckpointFile, writeCheckpointFile, type SigningKey } from "eventstore-lite";
import type { LogFiles } from "./log-files.ts";

/** Where the newest checkpoint of a log is kept, and the key that signs it. */
export interface CheckpointStore {
  /** How the checkpoint is called in a sentence: where it is. */
  readonly checkpoint: string;
  /** How the key is called in a sentence. */
  readonly signingKey: string;
  /** The note; undefined when there is none. Throws CheckpointRefused for what is no text. */
  read(): Promise<string | undefined>;
  /** Replaces the note; after a crash it is the old one or the new one, whole. */
  write(note: string): Promise<void>;
  /** Makes the key where there is none. Throws SigningKeyRefused. */
  loadKey(): Promise<SigningKey>;
  /** Undefined where no key was made yet. Throws SigningKeyRefused. */
  findKey(): Promise<SigningKey | undefined>;
}

/** Beside the log, as files. */
export function checkpointFiles({ checkpoint, signingKey }: LogFiles): CheckpointStore {
  return {
    checkpoint,
    signingKey,
    read: () => readCheckpointFile(checkpoint),
    write: (note) => writeCheckpointFile(checkpoint, note),
    loadKey: async () => loadSigningKey(signingKey),
    findKey: async () => (existsSync(signingKey) ? loadSigningKey(signingKey) : undefined),
  };
}
