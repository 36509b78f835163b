import { randomUUID } from "node:crypto";
import { createBoundedCache } from "../bounded-cache.ts";
import type { TransformAppend } from "../append/writer-transform.ts";
import { decodeBatch, type FaultReply, type Operation, type Reply } from "../append/writer-messages.ts";
import { type BatchAnswer, createSettle, transformAll, type Head, OtherHashes } from "./transform-and-settle-batch.ts";
import { type Columns, columnsOf } from "./append-parameters.ts";
import { createDoubt, type DoubtOptions, type Outcome } from "./batches-in-doubt.ts";
import { faultOf, isUnanswered, NotConnected } from "./classify-errors.ts";
import { type NowOf, type OpenedEpoch, perform } from "./change-snapshots-leases-archive.ts";

/** Executes the store's requests that write to the log; answers each once its changes are durable. */
export interface Writer {
  /**
   * Does the part of a request that needs no database, for example while the database works on the previous request.
   * Call the returned function once the previous request is answered; it does the rest.
   */
  begin(request: string | Exclude<Operation, { kind: "close" }>): () => Promise<Reply>;
}

export interface WriterOptions extends DoubtOptions, OpenedEpoch {
  readonly transform: TransformAppend;
  /** True if the database's clock dates events and expires leases, not the caller's. */
  readonly usesServerClock: boolean;
  /** The writer calls this after appends, with the log's last position. */
  readonly onAppended: (position: number) => void;
}

/** Number of streams whose version is cached, in about 10 MB. For other streams the database searches longer. */
const STREAMS_CACHED_MAX = 65_536;

export function createWriter(options: WriterOptions): Writer {
  const { transform, onAppended } = options;
  const nowOf: NowOf = (nowMs) => (options.usesServerClock ? null : nowMs);
  const versions = createBoundedCache<string, number>(STREAMS_CACHED_MAX);
  const send = createSend(options);
  const settle = createSettle();
  /**
   * Last head of this log that the writer has seen. A server whose log does not hold it has lost events or holds
   * another log.
   */
  let known: Head = { position: 0, hash: new Uint8Array() };
  let stoppedBy: string | undefined;

  function append(text: string): () => Promise<Reply> {
    const batch = decodeBatch(text);
    const transformed = transformAll(batch, transform);
    const columns = columnsOf(transformed.appends, (stream) => versions.get(stream) ?? 0);
    return async () => {
      const startedAt = performance.now();
      const answer = transformed.appends.length === 0 ? undefined : await send(columns, nowOf(batch.nowMs), known);
      const commitMs = performance.now() - startedAt;
      const { reply, head } = settle(batch, transformed, answer, versions);
      if (head !== undefined) {
        known = head;
        onAppended(head.position);
      }
      return { ...reply, commitMs };
    };
  }

  return {
    begin(request) {
      const answer = typeof request === "string" ? append(request) : () => perform(options, request, nowOf);
      return async () => {
        if (stoppedBy !== undefined) return { kind: "fault", fault: "stopped", cause: stoppedBy };
        try {
          return await answer();
        } catch (error) {
          const reply = faultReply(error);
          if (reply.fault === "fatal" || reply.fault === "diverged") stoppedBy = reply.cause;
          return reply;
        }
      };
    },
  };
}

/** Thrown if the store was closed before the outcome of a batch was known. */
class InDoubt extends Error {
  override readonly name = "InDoubt";
}

/** Thrown if the connection was lost, and the batch is not in the log. */
class NotAppended extends Error {
  override readonly name = "NotAppended";
}

/**
 * Creates a function that sends a batch of appends to the database. If the answer is lost, it asks on another
 * connection if the log holds the batch, so that callers always learn the real outcome.
 */
function createSend(options: WriterOptions) {
  const { database, schema, epoch } = options;
  const writer = randomUUID();
  const doubt = createDoubt(writer, options);
  let seq = 0;

  return async (columns: Columns, nowMs: number | null, known: Head): Promise<BatchAnswer> => {
    seq += 1;
    const { streams, floors, keys, compared, leases, appends, conditions, digests, ids, types, datas, metas } = columns;
    try {
      const [answer] = await database.run(
        (sql) => sql<BatchAnswer[]>`SELECT * FROM ${sql(schema)}.append(
          ${writer}, ${seq}, ${epoch}, ${nowMs}, ${known.position}, ${known.hash}, ${streams}, ${floors}, ${keys}, ${leases},
          ${appends}, ${conditions}, ${digests}, ${ids}, ${types}, ${datas}, ${metas}, ${compared})`,
      );
      return answer!;
    } catch (error) {
      if (!isUnanswered(error) || error instanceof NotConnected) throw error;
      const outcome: Outcome = await doubt.resolve(seq).catch((cause: unknown) => {
        throw new InDoubt(messageOf(cause));
      });
      if (outcome === undefined) throw new NotAppended(messageOf(error));
      return outcome;
    }
  };
}

function faultReply(error: unknown): FaultReply {
  const cause = messageOf(error);
  if (error instanceof OtherHashes) return { kind: "fault", fault: "fatal", cause };
  return { kind: "fault", fault: error instanceof InDoubt ? "in-doubt" : faultOf(error), cause };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
