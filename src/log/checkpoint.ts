import {
  type Awaitable,
  CheckpointRefused,
  contradictionOf,
  createLogTree,
  openCheckpoint,
  signCheckpoint,
  type Checkpoint,
  type Head,
  type LogTree,
  type SigningKey,
  readCheckpointFile,
  loadSigningKey,
  signingKeyOf,
  writeCheckpointFile,
} from "eventstore-lite";
import type { DataOf, LogStore } from "../../events/catalog.ts";
import { isoTime, type Clock } from "../platform/clock.ts";
import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import type { LogFiles } from "./log-files.ts";

/** Stores the newest checkpoint of a log, and the key that signs it. */
export interface CheckpointStore {
  /** Names the checkpoint in a sentence, by where it is. */
  readonly checkpoint: string;
  /** Names the key in a sentence. */
  readonly signingKey: string;
  /** The note; undefined if there is none. Throws CheckpointRefused if it is not text. */
  read(): Promise<string | undefined>;
  /** Replaces the note; after a crash it is the old one or the new one, whole. */
  write(note: string): Promise<void>;
  /** The newest note with a witness's cosignature; undefined if there is none. Throws CheckpointRefused. */
  readCosigned(): Promise<string | undefined>;
  writeCosigned(note: string): Promise<void>;
  /**
   * Stores a note that the log contradicts. From then on `read` returns it, no matter what others write, until the loss
   * is accepted.
   */
  writeDenied(note: string): Promise<void>;
  acceptLoss(): Promise<void>;
  /** Makes the key if there is none. Throws SigningKeyRefused. */
  loadKey(): Promise<SigningKey>;
  /** Undefined if no key was made yet. Throws SigningKeyRefused. */
  findKey(): Promise<SigningKey | undefined>;
}

/** Stores the checkpoint as files next to the log. */
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

/** Storage for a shared log's checkpoint, separate from the log's own tables, which an older dump may replace. */
export interface Notes {
  note(name: string): Promise<string | undefined>;
  keepNote(name: string, text: string | undefined): Promise<void>;
}

const NOTE = "checkpoint";
const COSIGNED = "checkpoint/cosigned";
const DENIED = "checkpoint/denied";

/**
 * Stores the checkpoint in the vault, which all instances share. `seed`: 32 secret bytes that are the same for all of
 * them.
 */
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
    // The key is derived, so it counts as made with the first note: a log that only commands have written to has
    // neither.
    findKey: async () => ((await read()) === undefined ? undefined : key),
  };
}

/** The name of a log in its checkpoints. It contains the log's id, so that no two logs share a name. */
export function formatOrigin(store: { readonly id: string }): string {
  return `reachlog/${store.id}`;
}

/** Signs a checkpoint of the log as of that head: it binds the end of the chain and the root of the Merkle tree. */
export async function signHead(store: LogStore, head: Head, key: SigningKey, clock: Clock): Promise<string> {
  return signChain(store, head, key, clock, { root: await readRoot(createLogTree(store), head.position) });
}

/** Signs a checkpoint of that head. Without `tree` it has no root: for a log that has no tree yet, or no longer the head. */
export function signChain(
  store: Pick<LogStore, "id">,
  { position, hash }: Head,
  key: SigningKey,
  clock: Clock,
  tree: Pick<Checkpoint, "root"> = {},
): string {
  return signCheckpoint({ origin: formatOrigin(store), position, hash, ...tree, time: isoTime(clock()) }, key);
}

async function readRoot(tree: LogTree, size: number): Promise<string> {
  return Buffer.from(await tree.at(size).root()).toString("hex");
}

/**
 * True if the log's events have another root. Stored tiles may be wrong although the log is right, so they are computed
 * again first.
 */
export async function deniesRoot(tree: LogTree, { position, root }: Checkpoint): Promise<boolean> {
  if (root === undefined || (await readRoot(tree, position)) === root) return false;
  await tree.forget();
  return (await readRoot(tree, position)) !== root;
}

/** How the log contradicts a checkpoint, as a sentence and for the event that accepts the loss. */
export interface Loss {
  readonly sentence: string;
  readonly newEvents: Omit<DataOf<"LogLossAccepted">, "found_position" | "found_hash">;
}

/**
 * Compares the log with a checkpoint whose signature was verified; undefined if they agree. `what` names the checkpoint
 * in the sentence.
 */
export async function contradict(store: LogStore, checkpoint: Checkpoint, what: string): Promise<Loss | undefined> {
  const contradiction = await contradictionOf(store, formatOrigin(store), checkpoint);
  if (contradiction === undefined) return undefined;
  const expected = { expected_position: checkpoint.position, expected_hash: checkpoint.hash };
  const { kind, position } = contradiction;
  if (kind === "other-log") {
    const { position: end } = await store.head();
    const orCut = checkpoint.position > end ? " (or an import of it that lacks its end)" : "";
    const sentence = `${what} is of another log, ${checkpoint.origin}, and this is ${formatOrigin(store)}${orCut}`;
    return { sentence, newEvents: { reason: "other_log", ...expected } };
  }
  if (kind === "lost-tail") {
    const sentence = `the log ends at position ${position}, but ${what} knew ${checkpoint.position} events: all from position ${position + 1} on are lost`;
    return { sentence, newEvents: { reason: "lost_tail", ...expected } };
  }
  const sentence = `the log holds another history than ${what} knew: it was altered at position ${position} or before`;
  return { sentence, newEvents: { reason: "other_history", ...expected } };
}

/**
 * Returns how the log contradicts its checkpoint, in its position, its hash or the chain from there on; undefined if it
 * does not, or if there is no checkpoint yet. One is written every few seconds, so little is left to verify after a
 * kill.
 */
export async function findLoss(
  store: LogStore,
  checkpoints: CheckpointStore,
  { publicKey }: SigningKey,
): Promise<Loss | undefined> {
  const checkpoint = await openNote(checkpoints.read(), publicKey);
  if (checkpoint === undefined) return undefined;
  if (checkpoint instanceof CheckpointRefused)
    return { sentence: `${checkpoints.checkpoint}: ${checkpoint.message}`, newEvents: { reason: "unknown" } };
  // The checkpoint of an empty log knew nothing, and another log may have been imported in its place.
  const { position, hash } = checkpoint;
  const what = `the checkpoint ${checkpoints.checkpoint}`;
  const denied = position === 0 ? undefined : await contradict(store, checkpoint, what);
  if (denied !== undefined) return denied;
  const { fault } = await store.verify({ from: position + 1 });
  if (fault === undefined) return undefined;
  const sentence = `the chain is broken at position ${fault.position}: ${fault.reason}`;
  const expected = { expected_position: position, expected_hash: hash, broken_position: fault.position };
  return { sentence, newEvents: { reason: "broken_chain", ...expected } };
}

/** The checkpoint of a note; undefined if there is no note. A note that proves nothing is returned as its refusal. */
export async function openNote(reading: Awaitable<string | undefined>, publicKey: KeyObject) {
  try {
    const note = await reading;
    return note === undefined ? undefined : openCheckpoint(note, publicKey);
  } catch (fault) {
    if (fault instanceof CheckpointRefused) return fault;
    throw fault;
  }
}

/** A checkpoint that the log is compared with, as its file held it. */
export interface KnownHead {
  /** Its name in a sentence. */
  readonly what: string;
  /** Undefined if there is no such file. */
  readonly note: string | undefined;
  /** The key that it must be signed with; undefined if none is given. */
  readonly publicKey: KeyObject | undefined;
}

/** The result of comparing the log with one head. `fault` is a sentence; without one, the log extends `checkpoint`. */
export type Compared =
  | { readonly what: string; readonly checkpoint: Checkpoint; readonly fault?: undefined }
  | { readonly what: string; readonly fault: string };

/**
 * Reads the log's own checkpoint, if there is one, and that of `headFile`. Call this before reading the log, because a
 * running service writes newer ones. A given key is the head's: an import's checkpoint is signed by its own key.
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

/** Reads a file that is not text as an empty note, so that it is reported like any other invalid checkpoint. */
export function readNote(reading: Promise<string | undefined>): Promise<string | undefined> {
  return reading.catch((fault: unknown) => {
    if (fault instanceof CheckpointRefused) return "";
    throw fault;
  });
}

/** Compares the log with a head: it must be the same log, and hold the head's position with its hash. */
export async function compare(store: LogStore, { what, note, publicKey }: KnownHead): Promise<Compared> {
  if (note === undefined) return { what, fault: `${what} is not there` };
  if (publicKey === undefined) return { what, fault: `${what} cannot be checked without the key: give --public-key` };
  const checkpoint = await openNote(note, publicKey);
  if (checkpoint === undefined || checkpoint instanceof CheckpointRefused)
    return { what, fault: `${what} proves nothing: ${checkpoint?.message}` };
  const loss = await contradict(store, checkpoint, what);
  return loss === undefined ? { what, checkpoint } : { what, fault: loss.sentence };
}
