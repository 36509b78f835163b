import {
  APPENDED,
  type AppendRequest,
  type Batch,
  type BatchReply,
  EVENT_FIELDS,
  UNFINISHED,
  VERDICT_FIELDS,
} from "../append/writer-messages.ts";
import type { TransformAppend } from "../append/writer-transform.ts";
import type { BoundedCache } from "../bounded-cache.ts";
import { canonicalHead, createLink } from "../event-hash-chain.ts";

/** The database's answer to a batch of appends. If it is lost, the writer can ask for it again. */
export interface BatchAnswer {
  readonly time_ms: number;
  /** Last position of the log before the batch. */
  readonly base: number;
  /** Hash of the log's last event before the batch. */
  readonly base_hash: Uint8Array;
  readonly verdicts: string;
  /** Hash of the log's last event after the batch. */
  readonly head_hash: Uint8Array;
}

/**
 * Appends of a batch whose events the writer's transform could finish, and the reasons why it could not finish the
 * others.
 */
export interface TransformedBatch {
  readonly appends: readonly AppendRequest[];
  /** For each append of the batch, why the transform could not finish its events; undefined for those in `appends`. */
  readonly refusals: readonly (string | undefined)[];
}

export function transformAll(batch: Batch, transform: TransformAppend): TransformedBatch {
  const refusals = batch.appends.map((append) => transform(append));
  return { appends: batch.appends.filter((_, index) => refusals[index] === undefined), refusals };
}

/** The database's hashes of the events differ from those that this program makes. */
export class OtherHashes extends Error {
  override readonly name = "OtherHashes";
}

export interface Head {
  readonly position: number;
  readonly hash: Uint8Array;
}

export interface Settled {
  readonly reply: Omit<BatchReply, "commitMs">;
  /** Head of the log after the batch; undefined if no append of the batch went to the database. */
  readonly head: Head | undefined;
}

/**
 * Settles a batch from the database's answer: recomputes the hash chain and caches the streams' versions. Throws {@link
 * OtherHashes}.
 */
export type Settle = (
  batch: Batch,
  transformed: TransformedBatch,
  answer: BatchAnswer | undefined,
  versions: BoundedCache<string, number>,
) => Settled;

export function createSettle(): Settle {
  const link = createLink();

  return ({ wantsHashes }, { appends, refusals }, answer, versions) => {
    const verdicts = answer === undefined ? [] : answer.verdicts.split(" ").map(Number);
    const timeMs = answer?.time_ms ?? 0;
    const hashes: Uint8Array[] = [];
    let position = answer?.base ?? 0;
    let hash = answer?.base_hash ?? new Uint8Array();
    for (const [index, { stream, fields, start, count }] of appends.entries()) {
      const at = index * VERDICT_FIELDS;
      if (verdicts[at] !== APPENDED) continue;
      let version = verdicts[at + 3]! - count;
      for (let field = start; field < start + count * EVENT_FIELDS; field += EVENT_FIELDS) {
        const [id, type, data, meta] = [fields[field]!, fields[field + 1]!, fields[field + 2]!, fields[field + 3]!];
        position += 1;
        version += 1;
        hash = link(hash, canonicalHead(position, stream, version, id, type, timeMs), data, meta);
        hashes.push(hash);
      }
      versions.set(stream, version);
    }
    if (answer !== undefined && !Buffer.from(hash).equals(answer.head_hash)) {
      throw new OtherHashes(`the database has another hash at position ${position} than this program makes`);
    }
    return {
      reply: {
        kind: "batch",
        timeMs,
        verdicts: withRefusals(verdicts, refusals),
        hashes: wantsHashes ? Buffer.concat(hashes).toString("hex") : "",
        refusals: refusals.filter((refusal) => refusal !== undefined),
      },
      head: answer && { position, hash },
    };
  };
}

/** Merges the database's verdicts with refusals of appends that were not sent to it, in the order of the batch. */
function withRefusals(verdicts: readonly number[], refusals: readonly (string | undefined)[]): readonly number[] {
  const all: number[] = [];
  let answered = 0;
  let refused = 0;
  for (const refusal of refusals) {
    if (refusal === undefined) {
      all.push(...verdicts.slice(answered, answered + VERDICT_FIELDS));
      answered += VERDICT_FIELDS;
    } else {
      all.push(UNFINISHED, refused, 0, 0);
      refused += 1;
    }
  }
  return all;
}
