import { APPENDED, type Piece, type Reply } from "../../append/messages.ts";
import type { Boundaries } from "../transaction.ts";
import type { BatchWriter, WrittenBatch } from "./batch.ts";

/** Writes an append piece by piece, in one transaction. Undefined while more pieces are to come. */
export type WritePiece = (piece: Piece) => Reply | undefined;

/** `attempt` returns the fault if its work fails. */
export function createWritePiece(
  { begin, commit, rollback }: Boundaries,
  batches: BatchWriter,
  attempt: (work: () => Reply | undefined) => Reply | undefined,
): WritePiece {
  let startedAt = 0;
  let written: WrittenBatch | undefined;
  /** A refusal or a fault is known early; the pieces that follow are then skipped. */
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
