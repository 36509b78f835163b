// The writer thread: the only place that writes to the log, so that waiting for the disk never stops the event loop
// of the thread that serves requests. Started by open.ts.
import { parentPort, workerData } from "node:worker_threads";
import { StoreBusy } from "../../errors.ts";
import { isPiece, type Notice, type Piece, type Request } from "../../append/writer-messages.ts";
import type { Started } from "../../append/start-thread.ts";
import { filesOf, openWriter } from "../connections.ts";
import { rememberDatabase } from "../../detect-replaced-files.ts";
import { createTransform, loadWriterTransform } from "../../append/writer-transform.ts";
import { watchOthers } from "./watch-other-writers.ts";
import { createWriter } from "./writer.ts";

/** The thread's `workerData`. */
export interface ThreadOptions {
  readonly file: string;
  readonly databaseBytesMax: number;
  readonly eventBytesMax: number;
  /** URL of the module that finishes the events which the codec left unfinished. */
  readonly writerTransform: string | undefined;
}

if (!parentPort) throw new Error("writer-thread.ts runs as a worker only");
const port = parentPort;
const { file, databaseBytesMax, eventBytesMax, writerTransform } = workerData as ThreadOptions;

try {
  const transform = createTransform(await loadWriterTransform(writerTransform), eventBytesMax);
  const { db, storeId } = openWriter(file, databaseBytesMax);
  const writer = createWriter(db, transform, rememberDatabase(filesOf(file)));
  const stopWatching = watchOthers(db, (position) => {
    port.postMessage({ kind: "notice", position } satisfies Notice);
  });
  port.on("message", (request: Request | Piece) => {
    if (isPiece(request)) {
      const reply = writer.answerPiece(request);
      if (reply) port.postMessage(reply);
      return;
    }
    const isLast = typeof request === "object" && request.kind === "close";
    if (isLast) stopWatching();
    port.postMessage(writer.answer(request));
    // After the last reply, nothing keeps the thread alive. Closing the port would do the same, but not every runtime
    // can.
    if (isLast) port.unref();
  });
  port.postMessage({ storeId } satisfies Started);
} catch (error) {
  const refused = error instanceof Error ? error.message : String(error);
  port.postMessage({ refused, isBusy: error instanceof StoreBusy } satisfies Started);
  port.unref();
}
