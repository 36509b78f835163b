import { APPENDED, type Piece, type Reply } from "../../append/writer-messages.ts";
import type { Boundaries } from "../transaction.ts";
import type { BatchWriter, WrittenBatch } from "./batch.ts";

/** Writes the next piece of a large append. Returns undefined until the last piece; all pieces are one transaction. */
export type WritePiece = (piece: Piece) => Reply | undefined;

/**
 * Creates the function that writes large appends in pieces. `attempt` runs the given work and returns the fault if it
 * fails.
 */
export function createWritePiece(
  { begin, commit, rollback }: Boundaries,
  batches: BatchWriter,
  attempt: (work: () => Reply | undefined) => Reply | undefined,
): WritePiece {
  let startedAt = 0;
  let written: WrittenBatch | undefined;
  /** Refusal or fault that an earlier piece met; the pieces that follow are then skipped. */
  let reply: Reply | undefined;

  function write(text: string, isLast: boolean): Reply | undefined {
    try {
      if (written === undefined) {
        startedAt = performance.now();
        begin();
        written = batches.write(text);
      } else {
        written = batches.writeMore(written, text, isLast);
      }
      if (written.verdicts[0] !== APPENDED) takeBack();
      else if (isLast) commit();
      else return undefined;
      return { ...written, commitMs: performance.now() - startedAt };
    } catch (error) {
      rollback();
      throw error;
    }
  }

  function takeBack(): Reply {
    rollback();
    batches.forget();
    return { kind: "done" };
  }

  return (piece) => {
    if (piece.kind === "piece") reply ??= attempt(() => write(piece.text, piece.isLast));
    else if (reply?.kind !== "fault") reply = attempt(takeBack);
    if (piece.kind === "piece" && !piece.isLast) return undefined;
    const answer = reply;
    [written, reply] = [undefined, undefined];
    return answer;
  };
}
