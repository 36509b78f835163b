import type { KeyObject } from "node:crypto";
import { openCheckpoint, parseSize, type Checkpoint } from "./checkpoint.ts";
import { cosignedAt, decodeBase64, parseNote, type Cosigner } from "./signed-note.ts";
import { CheckpointRefused } from "../errors.ts";
import { hashLeaf, provesInclusion } from "./merkle-tree.ts";

/** Event, and the proof that it is in a Merkle tree which the log's key has signed. */
export interface EventProof {
  /** Canonical bytes of the event; their hash is a leaf of the Merkle tree. */
  readonly event: Uint8Array;
  readonly position: number;
  readonly hashes: readonly Uint8Array[];
  /** Signed note of the tree, with any cosignatures. */
  readonly note: string;
}

const FIRST_LINE = "c2sp.org/tlog-proof@v1";

/** Writes a proof in the format of https://c2sp.org/tlog-proof; its `extra` line is the event. */
export function formatProof({ event, position, hashes, note }: EventProof): string {
  const lines = [FIRST_LINE, `extra ${base64(event)}`, `index ${position - 1}`, ...hashes.map(base64)];
  return `${lines.join("\n")}\n\n${note}`;
}

/** Parses a proof and checks its form only. Throws {@link CheckpointRefused}. */
export function parseProof(text: string): EventProof {
  const end = text.indexOf("\n\n");
  const [first, extra = "", index = "", ...hashes] = text.slice(0, end).split("\n");
  if (end === -1 || first !== FIRST_LINE) throw refused(`its first line is not ${FIRST_LINE}`);
  const event = extra.startsWith("extra ") ? decodeBase64(extra.slice("extra ".length)) : undefined;
  if (event === undefined) throw refused("its second line is no event");
  const at = index.startsWith("index ") ? parseSize(index.slice("index ".length)) : undefined;
  if (at === undefined) throw refused("its third line is no index");
  const decoded = hashes.map((line) => decodeBase64(line) ?? new Uint8Array());
  return { event, position: at + 1, hashes: decoded, note: text.slice(end + 2) };
}

/** The content of a verified proof. */
export interface ProvedEvent {
  /** Canonical bytes of the proved event. */
  readonly event: Uint8Array;
  readonly position: number;
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  /** When the event was recorded, in ms since 1970. */
  readonly recordedMs: number;
  readonly data: unknown;
  readonly checkpoint: Checkpoint;
  /** Time at which the witness cosigned the tree, in seconds since 1970; undefined if no witness was given. */
  readonly cosignedAt: number | undefined;
}

/**
 * Verifies a proof. Throws {@link CheckpointRefused} unless the key signed a tree that has the event at its position,
 * and `witness`, if given, cosigned it.
 */
export function openProof(text: string, publicKey: KeyObject, witness?: Cosigner): ProvedEvent {
  const { event, position, hashes, note } = parseProof(text);
  const checkpoint = openCheckpoint(note, publicKey);
  if (checkpoint.root === undefined) throw refused("its checkpoint is of no Merkle tree");
  const head = { size: checkpoint.position, root: Buffer.from(checkpoint.root, "hex") };
  if (!provesInclusion(head, position - 1, hashLeaf(event), hashes))
    throw new CheckpointRefused(
      "signature",
      "the event does not stand where the proof says in the tree that was signed",
    );
  // The event's bytes hold its position, which must be the one that the proof names.
  const canonical = Buffer.from(event).toString();
  if (!canonical.startsWith(`${position}\n`)) throw refused("its event is of another position");
  const time = witness && cosignedAt(parseNote(note), witness);
  if (witness !== undefined && time === undefined)
    throw new CheckpointRefused("signature", `the head was not cosigned by the witness ${witness.name}`);
  const [, stream = "", , id = "", type = "", timeMs = "", data = ""] = canonical.split("\n");
  return {
    event,
    position,
    stream,
    id,
    type,
    recordedMs: Number(timeMs),
    data: parseData(data),
    checkpoint,
    cosignedAt: time,
  };
}

function parseData(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw refused("its event holds no JSON");
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function refused(why: string): CheckpointRefused {
  return new CheckpointRefused("malformed", `the proof cannot be read: ${why}`);
}
