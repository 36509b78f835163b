// The writer thread: the only place that writes to the log, so that waiting for the disk never stops the event loop
// of the thread that serves requests. Started by open.ts.
import { StoreBusy } from "../../errors.ts";
import { isPiece } from "../../append/messages.ts";
import { serveThread } from "../../append/serve-thread.ts";
import { filesOf, openWriter } from "../connections.ts";
import { rememberDatabase } from "../../detect-replaced-files.ts";
import { createTransform, loadWriterTransform } from "../../append/writer-transform.ts";
import { watchOthers } from "./watch.ts";
import { createWriter } from "./writer.ts";

/** Options of the log that the thread opens. */
export interface ThreadOptions {
  readonly file: string;
  readonly databaseBytesMax: number;
  readonly eventBytesMax: number;
  /** URL of the module that finishes the events which the codec left unfinished. */
  readonly writerTransform: string | undefined;
}

serveThread<ThreadOptions>(
  async ({ file, databaseBytesMax, eventBytesMax, writerTransform }, post) => {
    const transform = createTransform(await loadWriterTransform(writerTransform), eventBytesMax);
    const { db, storeId } = openWriter(file, databaseBytesMax);
    const writer = createWriter(db, transform, rememberDatabase(filesOf(file)));
    const stopWatching = watchOthers(db, (position) => post({ kind: "notice", position }));
    return {
      storeId,
      onMessage(request) {
        if (isPiece(request)) {
          const reply = writer.answerPiece(request);
          if (reply) post(reply);
          return;
        }
        if (typeof request === "object" && request.kind === "close") stopWatching();
        post(writer.answer(request));
      },
    };
  },
  (error) => error instanceof StoreBusy,
);
