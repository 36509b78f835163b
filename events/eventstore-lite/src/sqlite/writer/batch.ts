import type { DatabaseSync } from "node:sqlite";
import {
  APPENDED,
  type AppendRequest,
  type BatchReply,
  CONFLICT,
  decodeBatch,
  EVENT_FIELDS,
  KEY_REUSED,
  LEASE_LOST,
  REPEATED,
  UNFINISHED,
} from "../../append/messages.ts";
import { canonicalText, createLink } from "../../chain.ts";
import type { ExpectedVersion } from "../../store.ts";
import type { Finishing } from "../../append/finishing.ts";
import type { LeaseTable } from "./leases.ts";
import { createTail, type StreamTail, type Tail } from "./tail.ts";

export interface BatchWriter {
  /** Appends a batch inside of a transaction; each append gets its own verdict. */
  write(text: string): Omit<BatchReply, "commitMs">;
  /** To be called when that transaction was rolled back. */
  forget(): void;
}

/** What is the same for all appends of a batch. */
interface Moment {
  /** The caller's clock, by which leases expire. */
  readonly nowMs: number;
  /** What the events are recorded with. */
  readonly timeMs: number;
  readonly hashes: Uint8Array[] | undefined;
  /** Why appends of this batch were refused. */
  readonly refusals: string[];
}

export function createBatchWriter(db: DatabaseSync, leases: LeaseTable, finishing: Finishing): BatchWriter {
  const tail = createTail(db);
  const keys = createKeys(db);
  const insertEvents = createInsertEvents(db, tail);

  /** Every check comes before the first insert, so a refusal leaves nothing behind for its neighbours. */
  function decide(
    append: AppendRequest,
    { nowMs, timeMs, hashes, refusals }: Moment,
  ): readonly [number, number, number, number] {
    const { key, digest, lease, token, expected } = append;
    const kept = key === "" ? undefined : keys.find(key);
    if (kept && asksElse(kept.digest, digest)) return [KEY_REUSED, 0, 0, 0];
    if (kept) return [REPEATED, kept.first, kept.last, kept.version];
    if (lease !== "" && !leases.isHeld(lease, token, nowMs)) return [LEASE_LOST, 0, 0, 0];
    const stream = tail.stream(append.stream);
    if (!isExpected(stream.version, expected)) return [CONFLICT, stream.version, 0, 0];
    const refusal = finishing(append);
    if (refusal !== undefined) return [UNFINISHED, refusals.push(refusal) - 1, 0, 0];

    const first = tail.head.position + 1;
    insertEvents(append, stream, timeMs, hashes);
    const { position: last } = tail.head;
    if (key !== "") keys.keep(key, { digest, first, last, version: stream.version });
    return [APPENDED, first, last, stream.version];
  }

  return {
    forget: () => tail.forget(),
    write(text) {
      const { nowMs, wantsHashes, appends } = decodeBatch(text);
      tail.refresh();
      // A clock that was set back must not make the log run backwards.
      const timeMs = Math.max(nowMs, tail.head.timeMs);
      const hashes: Uint8Array[] | undefined = wantsHashes ? [] : undefined;
      const verdicts: number[] = [];
      const refusals: string[] = [];
      for (const append of appends) verdicts.push(...decide(append, { nowMs, timeMs, hashes, refusals }));
      const hex = hashes ? Buffer.concat(hashes).toString("hex") : "";
      return { kind: "batch", timeMs, verdicts, hashes: hex, refusals };
    },
  };
}

/** Who does not say what is asked takes whatever was. */
function asksElse(first: string, now: string): boolean {
  return first !== "" && now !== "" && first !== now;
}

function isExpected(version: number, expected: ExpectedVersion): boolean {
  if (expected === "any") return true;
  if (expected === "none") return version === 0;
  if (expected === "exists") return version > 0;
  return version === expected;
}

/** Inserts an append's events behind the head and moves the head; inside of a transaction. */
export type InsertEvents = (
  append: AppendRequest,
  stream: StreamTail,
  timeMs: number,
  /** Gets the new events' hashes, where somebody wants them. */
  hashes: Uint8Array[] | undefined,
) => void;

function createInsertEvents(db: DatabaseSync, tail: Tail): InsertEvents {
  const insert = db.prepare(
    `INSERT INTO events (position, stream, version, type, id, time, data, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const link = createLink();

  return ({ stream: name, fields, start, count }, stream, timeMs, hashes) => {
    const { head } = tail;
    if (stream.id === 0) stream.id = tail.createStream(name);
    const end = start + count * EVENT_FIELDS;
    for (let at = start; at < end; at += EVENT_FIELDS) {
      const id = fields[at]!;
      const type = fields[at + 1]!;
      const data = fields[at + 2]!;
      const meta = fields[at + 3]!;
      const position = head.position + 1;
      const version = stream.version + 1;
      const hash = link(head.hash, canonicalText(position, name, version, id, type, timeMs, data, meta));
      insert.run(position, stream.id, version, tail.typeId(type), id, timeMs, data, meta, hash);
      hashes?.push(hash);
      head.position = position;
      head.hash = hash;
      stream.version = version;
    }
    head.timeMs = timeMs;
  };
}

/** What the first append with a key asked for, and what it was answered. */
export interface KeptResult {
  /** Empty: nobody said. */
  readonly digest: string;
  readonly first: number;
  readonly last: number;
  readonly version: number;
}

/** Idempotency keys; written in the transaction of the append that they stand for, so neither exists alone. */
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
