import type { DatabaseSync } from "node:sqlite";
import type { ExpectedVersion } from "../store.ts";
import type { Finishing } from "./finishing.ts";
import { createInsertEvents } from "./insert.ts";
import { createKeys } from "./keys.ts";
import type { LeaseTable } from "./leases.ts";
import {
  APPENDED,
  type AppendRequest,
  type BatchReply,
  CONFLICT,
  decodeBatch,
  KEY_REUSED,
  LEASE_LOST,
  REPEATED,
  UNFINISHED,
} from "./messages.ts";
import { createTail } from "./tail.ts";

export interface BatchWriter {
  /** Appends a batch inside of a transaction; each append gets its own verdict. */
  write(text: string): BatchReply;
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
