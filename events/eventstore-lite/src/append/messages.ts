import type { SegmentFile } from "../archive/archive.ts";
import type { ExpectedVersion, Lease, Snapshot, StoredKey } from "../store.ts";

/** A failure of the engine, by what it means for the log. */
export type Fault =
  /** Nothing was written; works again once there is room. */
  | "full"
  /** Another process held the write lock for longer than the busy time-out; nothing was written. */
  | "busy"
  /** The database server is away; nothing was written. */
  | "unavailable"
  /** The server went away before it answered, and was not back when the store was closed. */
  | "in-doubt"
  /**
   * It is unknown if anything was written, or the database is damaged. Never retried: after a failed fsync the kernel
   * may report the next one as good although the bytes are lost.
   */
  | "fatal"
  /** The log is not the one that was written to before. */
  | "diverged";

/**
 * A request to the writer; each is answered once, in order. A string is a batch of appends: one string crosses to the
 * other thread several times faster than the objects that it stands for.
 */
export type Request = string | Operation;

/**
 * A piece of one large append, sent while the rest is still encoded. The append is answered once, after its last piece.
 */
export type Piece =
  /** The first piece is the beginning of a batch; the others hold events. */
  | { readonly kind: "piece"; readonly text: string; readonly isLast: boolean }
  /** No more pieces follow, and no event of the append may be stored. */
  | { readonly kind: "abandon" };

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

/**
 * Sent unsolicited when the database goes away before it answers, and when it is back. Requests are not answered
 * meanwhile.
 */
export interface AwayNotice {
  readonly kind: "away";
  /** Undefined if the database is back. */
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
  /** Reasons why appends were refused whose events could not be finished; {@link UNFINISHED} verdicts refer to them. */
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
/** index in `refusals`, 0, 0 */
export const UNFINISHED = 4;
/** 0, 0, 0 */
export const KEY_REUSED = 5;
/** 0, 0, 0: a segment may hold the key, so that its keys have to be compared first */
export const KEY_ARCHIVED = 6;

/** Separates two fields; neither names nor JSON can contain it. */
const SEPARATOR = "\n";

/** id, type, data, meta, and the input of the writer's transform, which is mostly empty. */
export const EVENT_FIELDS = 5;

/** One append as it is sent to the writer. */
export interface SentAppend {
  readonly stream: string;
  readonly expected: ExpectedVersion;
  /** Empty if there is none; the same holds for `digest` and `lease`. */
  readonly key: string;
  readonly digest: string;
  /** Number of segments that may hold the key and were searched in vain. */
  readonly comparedSegments: number;
  readonly lease: string;
  readonly token: number;
  /** {@link EVENT_FIELDS} of each event, one after the other. */
  readonly fields: readonly string[];
  /** Number of all its events. */
  readonly count: number;
}

/** One append as the writer reads it; its events are `count` × {@link EVENT_FIELDS} in `fields` from `start` on. */
export interface AppendRequest extends SentAppend {
  readonly fields: string[];
  readonly start: number;
  /** Number of events that follow in further pieces. */
  readonly missing: number;
}

export interface Batch {
  readonly nowMs: number;
  readonly wantsHashes: boolean;
  readonly appends: readonly AppendRequest[];
}

/** Joins all fields of a batch at once: one text for each append would be additional garbage. */
export function encodeBatch(nowMs: number, wantsHashes: boolean, appends: readonly SentAppend[]): string {
  const parts: string[] = [String(nowMs), wantsHashes ? "1" : "0"];
  for (const { stream, expected, key, digest, comparedSegments, lease, token, count, fields } of appends) {
    parts.push(stream, String(expected), key, digest, String(comparedSegments), lease, String(token), String(count));
    for (const field of fields) parts.push(field);
  }
  return parts.join(SEPARATOR);
}

/** Encodes the events of an append that follow those already sent. */
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

/**
 * Decodes the next events of an append that comes in pieces: its request, with these events instead of the earlier
 * ones.
 */
export function decodePiece(before: AppendRequest, text: string): AppendRequest {
  const fields = text.split(SEPARATOR);
  const count = fields.length / EVENT_FIELDS;
  return { ...before, fields, start: 0, count, missing: before.missing - count };
}

function decodeExpected(text: string): ExpectedVersion {
  return text === "any" || text === "none" || text === "exists" ? text : Number(text);
}
