import { existsSync } from "node:fs";
import { readCheckpointFile, writeCheckpointFile } from "./checkpoint-file.ts";
import { loadSigningKey, type SigningKey } from "./signing-key.ts";

/** Stores the newest checkpoint of a log, and the key that signs it. */
export interface CheckpointStore {
  /** Text for people that names the checkpoint by where it is stored. */
  readonly checkpoint: string;
  /** Text for people that names the signing key. */
  readonly signingKey: string;
  /**
   * Reads the signed note of the newest checkpoint; undefined if there is none. Throws CheckpointRefused if it is not
   * text.
   */
  read(): Promise<string | undefined>;
  /** Replaces the note of the newest checkpoint. After a crash the old note or the new one is there, whole. */
  write(note: string): Promise<void>;
  /** Reads the newest note that a witness has cosigned; undefined if there is none. Throws CheckpointRefused. */
  readCosigned(): Promise<string | undefined>;
  writeCosigned(note: string): Promise<void>;
  /**
   * Stores the note of a checkpoint that the log contradicts. From then on `read` returns this note, even after other
   * writes, until an operator accepts the loss with `acceptLoss`.
   */
  writeDenied(note: string): Promise<void>;
  acceptLoss(): Promise<void>;
  /** Reads the key that signs checkpoints, and makes it if there is none. Throws SigningKeyRefused. */
  loadKey(): Promise<SigningKey>;
  /** Reads the key that signs checkpoints; undefined if none was made yet. Throws SigningKeyRefused. */
  findKey(): Promise<SigningKey | undefined>;
}

/** The paths of the files with the newest checkpoint, the newest cosigned one, and the key. */
export interface CheckpointFiles {
  readonly checkpoint: string;
  readonly cosigned: string;
  readonly signingKey: string;
}

/** Stores the checkpoint as files next to the log. */
export function checkpointFiles({ checkpoint, cosigned, signingKey }: CheckpointFiles): CheckpointStore {
  return {
    checkpoint,
    signingKey,
    read: () => readCheckpointFile(checkpoint),
    write: (note) => writeCheckpointFile(checkpoint, note),
    readCosigned: () => readCheckpointFile(cosigned),
    writeCosigned: (note) => writeCheckpointFile(cosigned, note),
    writeDenied: (note) => writeCheckpointFile(checkpoint, note),
    acceptLoss: async () => {},
    loadKey: async () => loadSigningKey(signingKey),
    findKey: async () => (existsSync(signingKey) ? loadSigningKey(signingKey) : undefined),
  };
}
