import type { SegmentFile } from "../archive/archive.ts";
import type { ExpectedVersion, Lease, Snapshot, StoredKey } from "../store.ts";

/**
 * What a failure of the engine means for the log.
 * - `full`: nothing was written; works again once there is room.
 * - `busy`: another process held the write lock for longer than the busy time-out; nothing was written.
 * - `unavailable`: the database server is away; nothing was written.
 * - `in-doubt`: it went away before it answered, and was not back when the store was closed.
 * - `fatal`: whether it was written is unknown, or the database is damaged. Never retried: after a failed
 *   fsync the kernel may report the next one as good although the bytes are lost.
 * - `diverged`: the log is not the one that was written to before.
 */
export type Fault = "full" | "busy" | "unavailable" | "in-doubt" | "fatal" | "diverged";

/**
 * What the writer is asked; each is answered once, in order. A string is a batch of appends: one string crosses
 * to the other thread several times faster than the objects that it stands for.
 */
export type Request = string | Operation;

/**
 * A piece of one large append, which is sent while the rest is still encoded, and answered once, after the last piece. The
 * first is the beginning of a batch, the others are events. `abandon`: the rest does not come, and nothing of it may be
 * appended.
 */
export type Piece =
  { readonly kind: "piece"; readonly text: string; readonly isLast: boolean } | { readonly kind: "abandon" };

export function isPiece(message: Request | Piece): message is Piece {
  return typeof message === "object" && (message.kind === "piece" || message.kind === "abandon");
}

export type Operation =
  | { readonly kind: "saveSnapshot"; readonly names: readonly string[]; readonly snapshot: Snapshot }
  | { readonly kind: "removeSnapshots"; readonly names: readonly string[] }
  | {
      readonly kind: "acquireLease";
      readonly name: string;
      readonly holder: string;
      readonly ttlMs: number;
      readonly steal: boolean;
      readonly nowMs: number;
    }
  | { readonly kind: "releaseLease"; readonly name: string; readonly token: number }
  | { readonly kind: "recordSegment"; readonly file: SegmentFile }
  | { readonly kind: "recordKeys"; readonly last: number; readonly keys: readonly StoredKey[] }
  | { readonly kind: "close" };

export type Reply = BatchReply | FaultReply | { readonly kind: "done"; readonly lease?: Lease };

/** Sent unsolicited between two replies when another process has appended up to `position`. */
export interface Notice {
  readonly kind: "notice";
  readonly position: number;
}

/** The same: the database went away before it answered, or is back. Meanwhile nothing that is sent would be answered. */
export interface AwayNotice {
  readonly kind: "away";
  /** Undefined: it is back. */
  readonly cause: string | undefined;
}

export interface FaultReply {
  readonly kind: "fault";
  /** `stopped`: not attempted, because an earlier fault was fatal. */
  readonly fault: Fault | "stopped";
  readonly cause: string;
}

export interface BatchReply {
  readonly kind: "batch";
  /** Recorded time of every event of this batch. */
  readonly timeMs: number;
  /** {@link VERDICT_FIELDS} numbers for each append, in order. */
  readonly verdicts: readonly number[];
  /** The new events' hashes in hex, one after the other; empty when the batch did not ask for them. */
  readonly hashes: string;
  /** Why appends were refused whose events could not be finished. */
  readonly refusals: readonly string[];
  /** How long the transaction took, its fsync included. */
  readonly commitMs: number;
}

// One verdict: its code, then three numbers.
export const VERDICT_FIELDS = 4;
/** first, last, version */
export const APPENDED = 0;
/** first, last, version of the first time */
export const REPEATED = 1;
/** actual version, 0, 0 */
export const CONFLICT = 2;
/** 0, 0, 0 */
export const LEASE_LOST = 3;
/** place in `refusals`, 0, 0 */
export const UNFINISHED = 4;
/** 0, 0, 0 */
export const KEY_REUSED = 5;
/** 0, 0, 0: a segment may hold the key, so that its keys have to be compared first */
export const KEY_ARCHIVED = 6;

/** Stands between two fields: neither names nor JSON can hold it. */
const SEPARATOR = "\n";

/** id, type, data, meta, and what of the data is unfinished: mostly nothing. */
export const EVENT_FIELDS = 5;

/** One append as it is sent to the writer. */
export interface SentAppend {
  readonly stream: string;
  readonly expected: ExpectedVersion;
  /** Empty when there is none, as `digest` and `lease`. */
  readonly key: string;
  readonly digest: string;
  /** In how many of the segments that may hold the key it was found not to be. */
  readonly comparedSegments: number;
  readonly lease: string;
  readonly token: number;
  /** {@link EVENT_FIELDS} of each event, one after the other. */
  readonly fields: readonly string[];
  /** Of all its events. */
  readonly count: number;
}

/** One append as the writer reads it; its events are `count` × {@link EVENT_FIELDS} in `fields` from `start` on. */
export interface AppendRequest extends SentAppend {
  readonly fields: string[];
  readonly start: number;
  /** How many more come in further pieces. */
  readonly missing: number;
}

export interface Batch {
  readonly nowMs: number;
  readonly wantsHashes: boolean;
  readonly appends: readonly AppendRequest[];
}

/** All of a batch is joined at once: a text of each append on the way to it would be so much garbage more. */
export function encodeBatch(nowMs: number, wantsHashes: boolean, appends: readonly SentAppend[]): string {
  const parts: string[] = [String(nowMs), wantsHashes ? "1" : "0"];
  for (const { stream, expected, key, digest, comparedSegments, lease, token, count, fields } of appends) {
    parts.push(stream, String(expected), key, digest, String(comparedSegments), lease, String(token), String(count));
    for (const field of fields) parts.push(field);
  }
  return parts.join(SEPARATOR);
}

/** The events of an append that follow those which were sent. */
export function encodePiece(fields: readonly string[]): string {
  return fields.join(SEPARATOR);
}

export function decodeBatch(text: string): Batch {
  const fields = text.split(SEPARATOR);
  let at = 0;
  const next = (): string => fields[at++] ?? "";
  const nowMs = Number(next());
  const wantsHashes = next() === "1";
  const appends: AppendRequest[] = [];
  while (at < fields.length) {
    const stream = next();
    const expected = decodeExpected(next());
    const key = next();
    const digest = next();
    const comparedSegments = Number(next());
    const lease = next();
    const token = Number(next());
    const countInAll = Number(next());
    const count = Math.min(countInAll, (fields.length - at) / EVENT_FIELDS);
    const missing = countInAll - count;
    appends.push({ stream, expected, key, digest, comparedSegments, lease, token, fields, start: at, count, missing });
    at += count * EVENT_FIELDS;
  }
  return { nowMs, wantsHashes, appends };
}

/** The next events of an append that comes in pieces: its request, with these events instead of those before. */
export function decodePiece(before: AppendRequest, text: string): AppendRequest {
  const fields = text.split(SEPARATOR);
  const count = fields.length / EVENT_FIELDS;
  return { ...before, fields, start: 0, count, missing: before.missing - count };
}

function decodeExpected(text: string): ExpectedVersion {
  return text === "any" || text === "none" || text === "exists" ? text : Number(text);
}
