import type { SegmentFile } from "../segments/catalogue.ts";
import type { ExpectedVersion, Lease, Snapshot, StoredKey } from "../event-store-interface.ts";

/** A failure of the engine, by what it means for the log. */
export type Fault =
  /** Fault: the disk is full and nothing was written. Appends work again once there is room. */
  | "full"
  /** Fault: another process held the write lock for longer than the busy time-out, and nothing was written. */
  | "busy"
  /** Fault: the database server is away, and nothing was written. */
  | "unavailable"
  /** Fault: the database server went away before it answered, and was not back when the store was closed. */
  | "in-doubt"
  /**
   * Fault: it is unknown if anything was written, or the database is damaged. The writer never retries, because after a
   * failed fsync the kernel may report the next one as good although bytes are lost.
   */
  | "fatal"
  /** Fault: the log that was reached is not the one to which this store has written. */
  | "diverged";

/**
 * A request to the writer thread, which answers requests in order, each once. A batch of appends is one string, because
 * a string reaches the other thread several times faster than objects do.
 */
export type Request = string | Operation;

/**
 * A piece of one large append, sent while the rest is still encoded. The append is answered once, after its last piece.
 */
export type Piece =
  /**
   * A piece of a large append. The text of the first piece is the beginning of an encoded batch; the text of each later
   * piece holds further events.
   */
  | { readonly kind: "piece"; readonly text: string; readonly isLast: boolean }
  /**
   * End of an append that failed while it was prepared: no more pieces follow, and none of its events may be stored.
   */
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

/**
 * Sent by the writer thread between two replies, without a request, when another process has appended up to `position`.
 */
export interface Notice {
  readonly kind: "notice";
  readonly position: number;
}

/**
 * Sent by the writer thread, without a request, when the database goes away before it answers, and when it is back.
 * Requests are not answered meanwhile.
 */
export interface AwayNotice {
  readonly kind: "away";
  /** Reason why the database does not answer; undefined if it is back. */
  readonly cause: string | undefined;
}

export interface FaultReply {
  readonly kind: "fault";
  /** Fault of the request; `stopped` if the writer did not attempt it, because an earlier fault was fatal. */
  readonly fault: Fault | "stopped";
  readonly cause: string;
}

export interface BatchReply {
  readonly kind: "batch";
  /** Time in ms since the epoch that is recorded for every event of this batch. */
  readonly timeMs: number;
  /** Verdicts on the appends, in the order of the appends: {@link VERDICT_FIELDS} numbers for each. */
  readonly verdicts: readonly number[];
  /** The new events' hashes in hex, one after the other; empty when the batch did not ask for them. */
  readonly hashes: string;
  /**
   * Reasons why the writer thread could not finish the events of some appends; an {@link UNFINISHED} verdict holds an
   * index in this list.
   */
  readonly refusals: readonly string[];
  /** Duration of the transaction in ms, its fsync included. */
  readonly commitMs: number;
}

// Number of numbers in one verdict: a code, then three numbers whose meaning depends on the code.
export const VERDICT_FIELDS = 4;
/**
 * Verdict: the events were appended. Its numbers are the first position, the last position, and the stream's version.
 */
export const APPENDED = 0;
/**
 * Verdict: nothing was appended, because an earlier append with the same idempotency key is in the log. Its numbers are
 * the earlier append's first position, last position, and stream version.
 */
export const REPEATED = 1;
/** Verdict: the stream has another version than the expected one. Its first number is the actual version. */
export const CONFLICT = 2;
/** Verdict: the lease of the append's fence has expired or another holder has it. */
export const LEASE_LOST = 3;
/**
 * Verdict: the writer thread could not finish the events. Its first number is the index of the reason in `refusals`.
 */
export const UNFINISHED = 4;
/** Verdict: the idempotency key was used for another request before. */
export const KEY_REUSED = 5;
/**
 * Verdict: a segment may hold the idempotency key, so the keys in the segments have to be compared before the append.
 */
export const KEY_ARCHIVED = 6;

/** Separates two fields; neither names nor JSON can contain it. */
const SEPARATOR = "\n";

/**
 * Number of fields of an event: id, type, data, meta, and the input of the writer's transform, which is mostly empty.
 */
export const EVENT_FIELDS = 5;

/** One append as it is sent to the writer. */
export interface SentAppend {
  readonly stream: string;
  readonly expected: ExpectedVersion;
  /** Idempotency key of the append; empty if it has none. */
  readonly key: string;
  /** Digest of the request that the append stands for; empty if it has no idempotency key. */
  readonly digest: string;
  /**
   * Number of segments that were searched in vain for the append's idempotency key, because they hold a key with the
   * same hash.
   */
  readonly comparedSegments: number;
  readonly lease: string;
  readonly token: number;
  /** Fields of the append's events: {@link EVENT_FIELDS} texts for each event, one event after the other. */
  readonly fields: readonly string[];
  /** Number of all events of the append. */
  readonly count: number;
}

/** One append as the writer reads it; its events are `count` × {@link EVENT_FIELDS} in `fields` from `start` on. */
export interface AppendRequest extends SentAppend {
  readonly fields: string[];
  readonly start: number;
  /** Number of events of the append that follow in further pieces. */
  readonly missing: number;
}

export interface Batch {
  readonly nowMs: number;
  readonly wantsHashes: boolean;
  readonly appends: readonly AppendRequest[];
}

/**
 * Encodes a batch as one text. Joins the fields of all appends in one call, because a text for each append would be one
 * more string to collect as garbage.
 */
export function encodeBatch(nowMs: number, wantsHashes: boolean, appends: readonly SentAppend[]): string {
  const parts: string[] = [String(nowMs), wantsHashes ? "1" : "0"];
  for (const { stream, expected, key, digest, comparedSegments, lease, token, count, fields } of appends) {
    parts.push(stream, String(expected), key, digest, String(comparedSegments), lease, String(token), String(count));
    for (const field of fields) parts.push(field);
  }
  return parts.join(SEPARATOR);
}

/**
 * Encodes a later piece of a large append. `fields`: the fields of the events that the pieces before it did not hold,
 * in order.
 */
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
 * Decodes the next piece of an append that is sent in several. Returns the request of the previous piece with the
 * events replaced by those of this piece.
 */
export function decodePiece(before: AppendRequest, text: string): AppendRequest {
  const fields = text.split(SEPARATOR);
  const count = fields.length / EVENT_FIELDS;
  return { ...before, fields, start: 0, count, missing: before.missing - count };
}

function decodeExpected(text: string): ExpectedVersion {
  return text === "any" || text === "none" || text === "exists" ? text : Number(text);
}
