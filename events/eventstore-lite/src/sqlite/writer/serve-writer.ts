import { StoreBusy } from "../../errors.ts";
import { isPiece, type Notice } from "../../append/writer-messages.ts";
import type { CommonWriterOptions, Started, WriterPort } from "../../append/start-writer.ts";
import { filesOf, openWriter } from "../connections.ts";
import { rememberDatabase } from "../../detect-replaced-files.ts";
import { createTransform, loadWriterTransform } from "../../append/writer-transform.ts";
import { watchOthers } from "./watch-other-writers.ts";
import { createWriter } from "./perform-write-requests.ts";

export interface SqliteWriterOptions extends CommonWriterOptions {
  readonly file: string;
  readonly databaseBytesMax: number;
  readonly pollMs: number;
}

/**
 * Opens the connection that writes to the log, and answers the requests that arrive at `port` until one closes it. The
 * first message says if the log could be opened.
 */
export async function serveSqliteWriter(port: WriterPort, options: SqliteWriterOptions): Promise<void> {
  const { file, databaseBytesMax, pollMs, eventBytesMax, writerTransform } = options;
  try {
    const transform = createTransform(await loadWriterTransform(writerTransform), eventBytesMax);
    const { db, storeId } = openWriter(file, databaseBytesMax);
    const writer = createWriter(db, transform, rememberDatabase(filesOf(file)));
    const report = (position: number): void => port.send({ kind: "notice", position } satisfies Notice);
    const stopWatching = watchOthers(db, pollMs, report, port.onFault);
    port.onRequest((request) => {
      if (isPiece(request)) {
        const reply = writer.answerPiece(request);
        if (reply) port.send(reply);
        return;
      }
      const isLast = typeof request === "object" && request.kind === "close";
      if (isLast) stopWatching();
      port.send(writer.answer(request));
      if (isLast) port.end();
    });
    port.send({ storeId } satisfies Started);
  } catch (error) {
    const refused = error instanceof Error ? error.message : String(error);
    port.send({ refused, isBusy: error instanceof StoreBusy } satisfies Started);
    port.end();
  }
}
