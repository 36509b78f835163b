import type { KeyObject } from "node:crypto";
import { HASH_BYTES } from "../chain.ts";
import { CheckpointRefused } from "../errors.ts";
import type { EventStore, NewEvent } from "../store.ts";
import { decodeBase64, isSignedBy, KEY_NAME, malformed, parseNote, signNote } from "./note.ts";
import type { SigningKey } from "./signing-key.ts";

/** What a holder of the log's key said of it: the log `origin` had `position` events, the last with that hash. */
export interface Checkpoint {
  /** Names the log; no spaces, no plus. */
  readonly origin: string;
  /** 0 for an empty log. */
  readonly position: number;
  /** The end of the hash chain; 64 hex digits. */
  readonly hash: string;
  /** The root of the Merkle tree over these events; 64 hex digits. Absent in checkpoints of the chain alone. */
  readonly root?: string;
  /** When it was signed: ISO 8601 UTC; undefined when the signer did not say. */
  readonly time: string | undefined;
}

const TIME_PREFIX = "time ";
const CHAIN_PREFIX = "chain ";

/** Ends the origin of a checkpoint whose third line is a root. */
const TREE_SUFFIX = "/tree";

/** ASCII decimal without leading zeroes. */
const SIZE = /^(0|[1-9]\d*)$/;

/**
 * Writes a https://c2sp.org/tlog-checkpoint, a https://c2sp.org/signed-note: origin, size, root in base64, the end of
 * the chain and the time as extension lines, an empty line, the signature under the name of the origin. Without a root
 * the third line is the end of the chain: to compare it one needs the log.
 */
export function signCheckpoint(checkpoint: Checkpoint, { privateKey, publicKey }: SigningKey): string {
  const { origin: log, position, hash, root, time } = checkpoint;
  const origin = root === undefined ? log : `${log}${TREE_SUFFIX}`;
  const base64 = (hex: string): string => Buffer.from(hex, "hex").toString("base64");
  const extensions = [
    ...(root === undefined ? [] : [`${CHAIN_PREFIX}${base64(hash)}`]),
    ...(time === undefined ? [] : [`${TIME_PREFIX}${time}`]),
  ];
  const lines = [origin, position, base64(root ?? hash), ...extensions];
  return signNote(lines.map((line) => `${line}\n`).join(""), origin, privateKey, publicKey);
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
  const [origin = "", size = "", third = "", ...extensions] = text.slice(0, -1).split("\n");
  const position = parseSize(size);
  if (position === undefined) throw malformed("its second line is no number of events");
  if (extensions.includes("")) throw malformed("it has an empty line");
  // Extension lines of others are passed over.
  const valueOf = (prefix: string): string | undefined =>
    extensions.find((line) => line.startsWith(prefix))?.slice(prefix.length);
  const hash = parseHash(third, "its third line");
  const time = valueOf(TIME_PREFIX);
  const chain = origin.endsWith(TREE_SUFFIX) ? valueOf(CHAIN_PREFIX) : undefined;
  if (chain === undefined) return { origin, position, hash, time };
  const log = origin.slice(0, -TREE_SUFFIX.length);
  return { origin: log, position, hash: parseHash(chain, "its chain's line"), root: hash, time };
}

/** Undefined unless it is a size as these formats write it: decimal, without leading zeroes. */
export function parseSize(text: string): number | undefined {
  return SIZE.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

function parseHash(base64: string, what: string): string {
  const hash = decodeBase64(base64);
  if (hash?.length !== HASH_BYTES) throw malformed(`${what} is no hash`);
  return hash.toString("hex");
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
