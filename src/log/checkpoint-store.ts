import { existsSync } from "node:fs";
import {
  loadSigningKey,
  readCheckpointFile,
  signingKeyOf,
  writeCheckpointFile,
  type SigningKey,
} from "eventstore-lite";
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
  /** The newest note with a witness's cosignature; undefined when there is none. Throws CheckpointRefused. */
  readCosigned(): Promise<string | undefined>;
  writeCosigned(note: string): Promise<void>;
  /** Keeps what the log denies: from then on it is what is read, whatever others write, until the loss is accepted. */
  writeDenied(note: string): Promise<void>;
  acceptLoss(): Promise<void>;
  /** Makes the key where there is none. Throws SigningKeyRefused. */
  loadKey(): Promise<SigningKey>;
  /** Undefined where no key was made yet. Throws SigningKeyRefused. */
  findKey(): Promise<SigningKey | undefined>;
}

/** Beside the log, as files. */
export function checkpointFiles({ checkpoint, cosigned, signingKey }: LogFiles): CheckpointStore {
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

/** Where a shared log's checkpoint is: apart from the log's own tables, which an older dump may replace. */
export interface Notes {
  note(name: string): Promise<string | undefined>;
  keepNote(name: string, text: string | undefined): Promise<void>;
}

const NOTE = "checkpoint";
const COSIGNED = "checkpoint/cosigned";
const DENIED = "checkpoint/denied";

/** In the vault, which all instances share. `seed`: 32 secret bytes that are the same for all of them. */
export function checkpointInVault({ note, keepNote }: Notes, seed: Uint8Array): CheckpointStore {
  const key = signingKeyOf(seed);
  const read = async (): Promise<string | undefined> => (await note(DENIED)) ?? (await note(NOTE));
  return {
    checkpoint: "in the vault",
    signingKey: "the key in the vault",
    read,
    write: (text) => keepNote(NOTE, text),
    readCosigned: () => note(COSIGNED),
    writeCosigned: (text) => keepNote(COSIGNED, text),
    writeDenied: (text) => keepNote(DENIED, text),
    acceptLoss: () => keepNote(DENIED, undefined),
    loadKey: async () => key,
    // It is derived, so it is made with the first note: a log that only commands have written to has neither.
    findKey: async () => ((await read()) === undefined ? undefined : key),
  };
}
