import type { KeyObject } from "node:crypto";
import { HASH_BYTES } from "../event-hash-chain.ts";
import { CheckpointRefused } from "../errors.ts";
import type { EventStore, NewEvent } from "../event-store-interface.ts";
import { decodeBase64, isSignedBy, KEY_NAME, malformed, parseNote, signNote } from "./signed-note.ts";
import type { SigningKey } from "./signing-key.ts";

/** A statement by a holder of the log's key: the log `origin` had `position` events, and the last one had this hash. */
export interface Checkpoint {
  /** Name of the log, without spaces or plus signs. */
  readonly origin: string;
  /** Number of events that the log had; 0 for an empty log. */
  readonly position: number;
  /** Hash of the log's last event, with which its hash chain ends; 64 hex digits. */
  readonly hash: string;
  /** Root of the Merkle tree over the log's events; 64 hex digits. Absent in checkpoints of the chain alone. */
  readonly root?: string;
  /** Time at which the checkpoint was signed, ISO 8601 UTC; undefined if it names none. */
  readonly time: string | undefined;
}

const TIME_PREFIX = "time ";
const CHAIN_PREFIX = "chain ";

/** Suffix of a checkpoint's origin (the log's name) if the checkpoint's third line is a root. */
const TREE_SUFFIX = "/tree";

/** Pattern of a size in a checkpoint: ASCII decimal without leading zeroes. */
const SIZE = /^(0|[1-9]\d*)$/;

/**
 * Makes a signed checkpoint (https://c2sp.org/tlog-checkpoint): origin, size and root, then the chain's end and the
 * time as extension lines. Without a root, the third line is the chain's end, which only the log can confirm.
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
 * Parses a checkpoint of any log that the key has signed; compare it with {@link contradictionOf}. Throws {@link
 * CheckpointRefused} if it is malformed or not signed by this key, before anything in it is used.
 */
export function openCheckpoint(note: string, publicKey: KeyObject): Checkpoint {
  const parsed = parseNote(note);
  // A signature vouches for the log's name: the key's name is part of the key id, and the origin is part of the signed
  // text.
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
  // Skips extension lines that this version does not know.
  const valueOf = (prefix: string): string | undefined =>
    extensions.find((line) => line.startsWith(prefix))?.slice(prefix.length);
  const hash = parseHash(third, "its third line");
  const time = valueOf(TIME_PREFIX);
  const chain = origin.endsWith(TREE_SUFFIX) ? valueOf(CHAIN_PREFIX) : undefined;
  if (chain === undefined) return { origin, position, hash, time };
  const log = origin.slice(0, -TREE_SUFFIX.length);
  return { origin: log, position, hash: parseHash(chain, "its chain's line"), root: hash, time };
}

/**
 * Parses a log size, or a position, as checkpoints and event proofs write it: a decimal number without leading zeroes.
 * Returns undefined for any other text.
 */
export function parseSize(text: string): number | undefined {
  return SIZE.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

function parseHash(base64: string, what: string): string {
  const hash = decodeBase64(base64);
  if (hash?.length !== HASH_BYTES) throw malformed(`${what} is no hash`);
  return hash.toString("hex");
}

/** How a log contradicts a checkpoint. */
export interface Contradiction {
  /**
   * `other-log`: the checkpoint is of another log; `lost-tail`: the log ends before the checkpoint's position;
   * `other-history`: the log holds another event there, so something was altered there or before.
   */
  readonly kind: "other-log" | "lost-tail" | "other-history";
  /**
   * Position of the contradiction: the log's end for `lost-tail`, the checkpoint's position for `other-history`,
   * otherwise 0.
   */
  readonly position: number;
}

/**
 * Compares a log with a checkpoint. `origin`: name of the log. Undefined if the log, or an import of it under another
 * name, holds all events of the checkpoint; this compares one hash and does not verify the chain.
 */
export async function contradictionOf<E extends NewEvent>(
  store: EventStore<E>,
  origin: string,
  checkpoint: Checkpoint,
): Promise<Contradiction | undefined> {
  const isOurs = checkpoint.origin === origin;
  const hash = await store.hashAt(checkpoint.position);
  // The hash covers all events up to the checkpoint's position. A checkpoint of an empty log fits only the log that it
  // names, because all logs are equal without events.
  if (hash === checkpoint.hash && (isOurs || checkpoint.position > 0)) return undefined;
  if (!isOurs) return { kind: "other-log", position: 0 };
  const { position } = await store.head();
  // If the log is longer than the checkpoint and yet has no event at this position, the event was removed; `verify`
  // finds that.
  return position < checkpoint.position
    ? { kind: "lost-tail", position }
    : { kind: "other-history", position: checkpoint.position };
}
