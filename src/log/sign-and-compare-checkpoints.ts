import type { Awaitable, Head } from "eventstore-lite";
import {
  CheckpointRefused,
  contradictionOf,
  createLogTree,
  openCheckpoint,
  signCheckpoint,
  type Checkpoint,
  type CheckpointStore,
  type SigningKey,
  readCheckpointFile,
  signingKeyOf,
} from "eventstore-lite/proof";
import type { DataOf, LogStore } from "../../events/event-types-and-codec.ts";
import { isoTime, type Clock } from "../platform/clock-ids-and-timers.ts";
import type { KeyObject } from "node:crypto";

/**
 * Storage of short texts, such as a shared log's checkpoint. It is separate from the log's tables, which an older dump
 * may replace.
 */
export interface Notes {
  note(name: string): Promise<string | undefined>;
  keepNote(name: string, text: string | undefined): Promise<void>;
}

const NOTE = "checkpoint";
const COSIGNED = "checkpoint/cosigned";
const DENIED = "checkpoint/denied";

/**
 * Creates a store that keeps the log's checkpoint in the vault, which all instances share. `seed`: 32 secret bytes, the
 * same for all instances.
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
    // The key is derived, so it always exists. Until the first checkpoint is stored it counts as absent, because a log
    // that only the command line has written to has no checkpoint.
    findKey: async () => ((await read()) === undefined ? undefined : key),
  };
}

/** Returns the name of a log in its checkpoints. It contains the log's id, so that no two logs share a name. */
export function formatOrigin(store: { readonly id: string }): string {
  return `reachlog/${store.id}`;
}

/**
 * Signs a checkpoint of the log at the given head: it binds the end of the hash chain and the root of the Merkle tree.
 */
export async function signHead(store: LogStore, head: Head, key: SigningKey, clock: Clock): Promise<string> {
  return signChain(store, head, key, clock, { root: await createLogTree(store).root(head.position) });
}

/**
 * Signs a checkpoint of the log at the given head. Without `tree` the checkpoint has no root: for a log that has no
 * Merkle tree yet, or whose tree no longer has that head.
 */
export function signChain(
  store: { readonly id: string },
  { position, hash }: Head,
  key: SigningKey,
  clock: Clock,
  tree: { readonly root?: string } = {},
): string {
  return signCheckpoint({ origin: formatOrigin(store), position, hash, ...tree, time: isoTime(clock()) }, key);
}

/**
 * Contradiction between the log and a checkpoint, as a sentence, and as the event by which an operator accepts the
 * loss.
 */
export interface Loss {
  readonly sentence: string;
  readonly newEvents: Omit<DataOf<"LogLossAccepted">, "found_position" | "found_hash">;
}

/**
 * Compares the log with a checkpoint whose signature was verified; undefined if they agree. `what`: the checkpoint's
 * name in the sentence.
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
  // A checkpoint of an empty log contradicts no log: another log may have been imported in its place.
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

/**
 * Opens the checkpoint in a signed note; undefined if there is no note. If the note is malformed or not signed by the
 * key, returns the error instead of throwing it.
 */
export async function openNote(reading: Awaitable<string | undefined>, publicKey: KeyObject) {
  try {
    const note = await reading;
    return note === undefined ? undefined : openCheckpoint(note, publicKey);
  } catch (fault) {
    if (fault instanceof CheckpointRefused) return fault;
    throw fault;
  }
}

/** A known head: a checkpoint, as read from its file, with which the log is compared. */
export interface KnownHead {
  /** Words that name the checkpoint and its file in error messages. */
  readonly what: string;
  /** Signed note with the known head; undefined if there is no such file. */
  readonly note: string | undefined;
  /** Public key that must have signed the known head; undefined if none is given. */
  readonly publicKey: KeyObject | undefined;
}

/**
 * Result of comparing the log with one known head. `fault`: a sentence on the contradiction; absent if the log extends
 * `checkpoint`.
 */
export type Compared =
  | { readonly what: string; readonly checkpoint: Checkpoint; readonly fault?: undefined }
  | { readonly what: string; readonly fault: string };

/**
 * Reads the log's own checkpoint, if there is one, and that of `headFile`. Call it before reading the log, because a
 * running service writes newer ones. A given public key is for `headFile`.
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

/**
 * Reads a signed note from a file. A file that is not text counts as an empty note, so that it is reported like any
 * invalid checkpoint.
 */
export function readNote(reading: Promise<string | undefined>): Promise<string | undefined> {
  return reading.catch((fault: unknown) => {
    if (fault instanceof CheckpointRefused) return "";
    throw fault;
  });
}

/** Compares the log with a known head: it must be the same log, and hold that head's position with the same hash. */
export async function compare(store: LogStore, { what, note, publicKey }: KnownHead): Promise<Compared> {
  if (note === undefined) return { what, fault: `${what} is not there` };
  if (publicKey === undefined) return { what, fault: `${what} cannot be checked without the key: give --public-key` };
  const checkpoint = await openNote(note, publicKey);
  if (checkpoint === undefined || checkpoint instanceof CheckpointRefused)
    return { what, fault: `${what} proves nothing: ${checkpoint?.message}` };
  const loss = await contradict(store, checkpoint, what);
  return loss === undefined ? { what, checkpoint } : { what, fault: loss.sentence };
}
