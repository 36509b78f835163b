import { existsSync } from "node:fs";
import {
  loadSigningKey,
  readCheckpointFile,
  signingKeyOf,
  writeCheckpointFile,
  type EventStore,
  type SigningKey,
} from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
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

/** A snapshot of no projection holds the note, as of no position: it is to be read where the log has lost events. */
const NOTE = { name: "checkpoint", version: 1, position: 0 } as const;
const COSIGNED = { ...NOTE, name: "checkpoint/cosigned" } as const;
const DENIED = { ...NOTE, name: "checkpoint/denied" } as const;

/** In the log's own database, which all instances share. `seed`: 32 secret bytes that are the same for all of them. */
export function checkpointInDatabase(
  { snapshots }: Pick<EventStore<Event>, "snapshots">,
  seed: Uint8Array,
): CheckpointStore {
  const key = signingKeyOf(seed);
  const read = async (): Promise<string | undefined> =>
    ((await snapshots.load(DENIED.name)) ?? (await snapshots.load(NOTE.name)))?.state;
  return {
    checkpoint: "in the database",
    signingKey: "the key in the vault",
    read,
    write: (note) => snapshots.save(NOTE.name, { ...NOTE, state: note }),
    readCosigned: async () => (await snapshots.load(COSIGNED.name))?.state,
    writeCosigned: (note) => snapshots.save(COSIGNED.name, { ...COSIGNED, state: note }),
    writeDenied: (note) => snapshots.save(DENIED.name, { ...DENIED, state: note }),
    acceptLoss: () => snapshots.remove([DENIED.name]),
    loadKey: async () => key,
    // It is derived, so it is made with the first note: a log that only commands have written to has neither.
    findKey: async () => ((await read()) === undefined ? undefined : key),
  };
}
