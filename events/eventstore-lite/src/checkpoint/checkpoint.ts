import type { KeyObject } from "node:crypto";
import { HASH_BYTES } from "../chain.ts";
import { CheckpointRefused } from "../errors.ts";
import type { EventStore, NewEvent } from "../store.ts";
import { decodeBase64, isSignedBy, KEY_NAME, malformed, parseNote, signNote } from "./note.ts";
import type { SigningKey } from "./signing-key.ts";

/** What somebody who had the log's key said of it: the log `origin` had `position` events, the last with that hash. */
export interface Checkpoint {
  /** Names the log; no spaces, no plus. */
  readonly origin: string;
  /** 0 for an empty log. */
  readonly position: number;
  /** 64 hex digits. */
  readonly hash: string;
  /** When it was signed: ISO 8601 UTC; undefined when the signer did not say. */
  readonly time: string | undefined;
}

const TIME_PREFIX = "time ";

/** ASCII decimal without leading zeroes. */
const SIZE = /^(0|[1-9]\d*)$/;

/**
 * Writes a checkpoint in the layout of https://c2sp.org/tlog-checkpoint, a https://c2sp.org/signed-note: origin, size,
 * hash in base64, the time as an extension line, an empty line, the signature under the name of the origin. The third
 * line is the last hash of a chain, not the root of a Merkle tree: to compare it one needs the log.
 */
export function signCheckpoint(checkpoint: Checkpoint, { privateKey, publicKey }: SigningKey): string {
  const { origin, position, hash, time } = checkpoint;
  const extension = time === undefined ? "" : `${TIME_PREFIX}${time}\n`;
  const text = `${origin}\n${position}\n${Buffer.from(hash, "hex").toString("base64")}\n${extension}`;
  return signNote(text, origin, privateKey, publicKey);
}

/**
 * Reads a checkpoint that the key has signed, of whatever log: `contradictionOf` compares. Throws
 * {@link CheckpointRefused} when it is none, or not signed by this key. Nothing is believed before that is settled.
 */
export function openCheckpoint(note: string, publicKey: KeyObject): Checkpoint {
  const parsed = parseNote(note);
  // Who signed says for which log: the key's name is part of the key id, and the origin is part of the signed text.
  const claimed = parsed.text.slice(0, parsed.text.indexOf("\n"));
  if (!KEY_NAME.test(claimed)) throw malformed("its first line names no log");
  if (!isSignedBy(parsed, claimed, publicKey)) {
    throw new CheckpointRefused("signature", "the checkpoint is not signed by the log's key");
  }
  return parseText(parsed.text);
}

function parseText(text: string): Checkpoint {
  const [origin = "", size = "", root = "", ...extensions] = text.slice(0, -1).split("\n");
  const position = Number(size);
  if (!SIZE.test(size) || !Number.isSafeInteger(position)) throw malformed("its second line is no number of events");
  const hash = decodeBase64(root);
  if (hash?.length !== HASH_BYTES) throw malformed("its third line is no hash");
  if (extensions.includes("")) throw malformed("it has an empty line");
  // Extension lines of others are passed over.
  const time = extensions.find((line) => line.startsWith(TIME_PREFIX))?.slice(TIME_PREFIX.length);
  return { origin, position, hash: hash.toString("hex"), time };
}

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
