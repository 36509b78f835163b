import type { DatabaseSync } from "node:sqlite";
import {
  APPENDED,
  type AppendRequest,
  type BatchReply,
  CONFLICT,
  decodeBatch,
  decodePiece,
  EVENT_FIELDS,
  KEY_ARCHIVED,
  KEY_REUSED,
  LEASE_LOST,
  REPEATED,
  UNFINISHED,
} from "../../append/writer-messages.ts";
import { canonicalHead, createLink } from "../../event-hash-chain.ts";
import { asksElse } from "../../append/compare-archived-idempotency-key.ts";
import type { ExpectedVersion } from "../../event-store-interface.ts";
import { type ArchivedKeys } from "../archived-idempotency-keys.ts";
import type { TransformAppend } from "../../append/writer-transform.ts";
import type { LeaseTable } from "./leases.ts";
import { createTail, type Tail } from "./log-tail.ts";

export type WrittenBatch = Omit<BatchReply, "commitMs">;

export interface BatchWriter {
  /** Appends a batch inside a transaction; each append gets its own verdict. */
  write(text: string): WrittenBatch;
  /**
   * Appends the next piece of a large append, in the transaction that accepted its first piece. Returns the result so
   * far; if this piece is refused, the caller has to roll back.
   */
  writeMore(written: WrittenBatch, text: string, isLast: boolean): WrittenBatch;
  /** Forgets what the last batch changed in memory. Call it after that batch's transaction was rolled back. */
  forget(): void;
}

/** State that all appends of one batch share. */
interface Moment {
  /** Time by the caller's clock, by which leases expire. */
  readonly nowMs: number;
  /** Appends of the batch that were accepted so far. */
  readonly accepted: AcceptedAppend[];
  /** Reasons why appends of this batch were refused. */
  readonly refusals: string[];
}

export function createBatchWriter(
  db: DatabaseSync,
  leases: LeaseTable,
  archivedKeys: ArchivedKeys,
  transform: TransformAppend,
): BatchWriter {
  const tail = createTail(db);
  const keys = createKeys(db);
  const insertEvents = createInsertEvents(db, tail);
  /** Append that was accepted and of which more pieces follow; undefined if there is none. */
  let partial: AcceptedAppend | undefined;

  /**
   * Decides on an append: makes every check before the first insert, so that a refusal does not affect the other
   * appends of the batch.
   */
  function decide(
    append: AppendRequest,
    { nowMs, accepted, refusals }: Moment,
  ): readonly [number, number, number, number] {
    const { key, digest, comparedSegments, lease, token, expected } = append;
    const kept = key === "" ? undefined : keys.find(key);
    if (kept && asksElse(kept.digest, digest)) return [KEY_REUSED, 0, 0, 0];
    if (kept) return [REPEATED, kept.first, kept.last, kept.version];
    if (key !== "" && archivedKeys.count(key) > comparedSegments) return [KEY_ARCHIVED, 0, 0, 0];
    if (lease !== "" && !leases.isHeld(lease, token, nowMs)) return [LEASE_LOST, 0, 0, 0];
    const stream = tail.stream(append.stream);
    if (!isExpected(stream.version, expected)) return [CONFLICT, stream.version, 0, 0];
    const refusal = transform(append);
    if (refusal !== undefined) return [UNFINISHED, refusals.push(refusal) - 1, 0, 0];

    const { head } = tail;
    const first = head.position + 1;
    if (stream.id === 0) stream.id = tail.createStream(append.stream);
    accepted.push({ append, streamId: stream.id, first, firstVersion: stream.version + 1 });
    head.position += append.count + append.missing;
    stream.version += append.count + append.missing;
    const { position: last } = head;
    if (key !== "") keys.keep(key, { digest, first, last, version: stream.version });
    return [APPENDED, first, last, stream.version];
  }

  return {
    forget() {
      tail.forget();
      partial = undefined;
    },
    write(text) {
      const { nowMs, wantsHashes, appends } = decodeBatch(text);
      tail.refresh();
      // If the clock was set back, the events get the time of the log's last event, because times must not fall along
      // the log.
      const timeMs = Math.max(nowMs, tail.head.timeMs);
      const verdicts: number[] = [];
      const accepted: AcceptedAppend[] = [];
      const refusals: string[] = [];
      for (const append of appends) verdicts.push(...decide(append, { nowMs, accepted, refusals }));
      const hashes = insertEvents(accepted, timeMs);
      partial = accepted.find(({ append }) => append.missing > 0);
      return { kind: "batch", timeMs, verdicts, hashes: wantsHashes ? hexOf(hashes) : "", refusals };
    },
    writeMore(written, text, isLast) {
      if (partial === undefined) throw new Error("there are more events of an append that was whole");
      const { append: before, first, firstVersion } = partial;
      const append = decodePiece(before, text);
      if (isLast && append.missing > 0) throw new Error("an append ended before its last event");
      const refusal = transform(append);
      if (refusal !== undefined) return { ...written, verdicts: [UNFINISHED, 0, 0, 0], refusals: [refusal] };
      const next = { ...partial, append, first: first + before.count, firstVersion: firstVersion + before.count };
      const hashes = insertEvents([next], written.timeMs);
      partial = isLast ? undefined : next;
      return { ...written, hashes: written.hashes === "" ? "" : written.hashes + hexOf(hashes) };
    },
  };
}

function hexOf(hashes: readonly Uint8Array[]): string {
  return Buffer.concat(hashes).toString("hex");
}

function isExpected(version: number, expected: ExpectedVersion): boolean {
  if (expected === "any") return true;
  if (expected === "none") return version === 0;
  if (expected === "exists") return version > 0;
  return version === expected;
}

/** An append whose events have positions in the log, but are not inserted yet. */
interface AcceptedAppend {
  readonly append: AppendRequest;
  readonly streamId: number;
  /** Position of the append's first event. */
  readonly first: number;
  /** Version of the append's first event in its stream. */
  readonly firstVersion: number;
}

/** Inserts the events of accepted appends in order, and returns their hashes. */
type InsertEvents = (accepted: readonly AcceptedAppend[], timeMs: number) => readonly Uint8Array[];

function createInsertEvents(db: DatabaseSync, { head, typeId }: Tail): InsertEvents {
  const statement = db.prepare(
    `INSERT INTO events (position, stream, version, type, id, time, data, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const link = createLink();

  function linkAll({ append, first, firstVersion }: AcceptedAppend, timeMs: number, hashes: Uint8Array[]): void {
    const { stream, fields, start, count } = append;
    for (let index = 0, at = start; index < count; index += 1, at += EVENT_FIELDS) {
      const [id, type] = [fields[at]!, fields[at + 1]!];
      const lines = canonicalHead(first + index, stream, firstVersion + index, id, type, timeMs);
      head.hash = link(head.hash, lines, fields[at + 2]!, fields[at + 3]!);
      hashes.push(head.hash);
    }
  }

  function insertAll(
    { append, streamId, first, firstVersion }: AcceptedAppend,
    timeMs: number,
    hashes: readonly Uint8Array[],
    hashesFrom: number,
  ): void {
    const { fields, start, count } = append;
    for (let index = 0, at = start; index < count; index += 1, at += EVENT_FIELDS) {
      const [id, type, data, meta] = [fields[at]!, fields[at + 1]!, fields[at + 2]!, fields[at + 3]!];
      const hash = hashes[hashesFrom + index]!;
      statement.run(first + index, streamId, firstVersion + index, typeId(type), id, timeMs, data, meta, hash);
    }
  }

  return (accepted, timeMs) => {
    const hashes: Uint8Array[] = [];
    // Makes all hashes before the first insert: if hashing and inserting alternate, each evicts the other's code and
    // data from the processor's caches, which takes a tenth longer.
    for (const append of accepted) linkAll(append, timeMs, hashes);
    const base = accepted[0]?.first ?? 0;
    for (const append of accepted) insertAll(append, timeMs, hashes, append.first - base);
    if (hashes.length > 0) head.timeMs = timeMs;
    return hashes;
  };
}

/** Request's digest and the result of the first append with an idempotency key. */
export interface KeptResult {
  /** Digest of the request that used the key; empty if it is unknown. */
  readonly digest: string;
  readonly first: number;
  readonly last: number;
  readonly version: number;
}

/** Table of idempotency keys. A key is written in the transaction of its append, so that neither exists alone. */
export interface Keys {
  find(key: string): KeptResult | undefined;
  keep(key: string, result: KeptResult): void;
}

function createKeys(db: DatabaseSync): Keys {
  const select = db.prepare("SELECT digest, first, last, version FROM idempotency_keys WHERE key = ?");
  const insert = db.prepare("INSERT INTO idempotency_keys (key, digest, first, last, version) VALUES (?, ?, ?, ?, ?)");
  return {
    find: (key) => select.get(key) as KeptResult | undefined,
    keep: (key, { digest, first, last, version }) => {
      insert.run(key, digest, first, last, version);
    },
  };
}
