// The writer thread of a store on PostgreSQL, started by open.ts. Finishing events and large batches take long here
// without blocking the event loop of the thread that serves requests.
import { createTransform, loadWriterTransform } from "../append/writer-transform.ts";
import type { Reply, Request } from "../append/messages.ts";
import { serveThread } from "../append/serve-thread.ts";
import { openDatabase } from "./database.ts";
import { createNotifier } from "./notifications.ts";
import { createWriter } from "./writer.ts";

export interface AppendThreadOptions {
  readonly url: string;
  readonly schema: string;
  readonly storeId: string;
  readonly epoch: string;
  readonly usesServerClock: boolean;
  readonly eventBytesMax: number;
  /** URL of the module that finishes the events which the codec left unfinished. */
  readonly writerTransform: string | undefined;
}

serveThread<AppendThreadOptions>(async (options, post) => {
  const { url, schema, storeId, epoch, usesServerClock, eventBytesMax, writerTransform } = options;
  const transform = createTransform(await loadWriterTransform(writerTransform), eventBytesMax);
  const database = openDatabase({ url, connections: 1, name: "eventstore-lite writer" });
  const notifier = createNotifier(url, storeId);
  const closing = new AbortController();
  const writer = createWriter({
    database,
    schema,
    epoch,
    usesServerClock,
    transform,
    onAppended: (position) => notifier.notify(position),
    onAway: (cause) => post({ kind: "away", cause }),
    closing: closing.signal,
  });

  function close(): () => Promise<Reply> {
    closing.abort();
    return async () => {
      await Promise.all([notifier.close(), database.close()]);
      return { kind: "done", isClosed: true };
    };
  }

  let answered = Promise.resolve();
  return {
    storeId,
    onMessage(message) {
      const request = message as Request;
      const answer = typeof request === "object" && request.kind === "close" ? close() : writer.begin(request);
      answered = answered.then(async () => post(await answer()));
    },
  };
});
