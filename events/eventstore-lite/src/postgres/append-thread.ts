// The writer thread of a store on PostgreSQL, started by open.ts. Finishing events and large batches take long here
// without blocking the event loop of the thread that serves requests.
import { parentPort, workerData } from "node:worker_threads";
import { createTransform, loadWriterTransform } from "../append/writer-transform.ts";
import type { AwayNotice, Reply, Request } from "../append/writer-messages.ts";
import type { Started } from "../append/start-thread.ts";
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

if (!parentPort) throw new Error("append-thread.ts runs as a worker only");
const port = parentPort;
const { url, schema, storeId, epoch, usesServerClock, eventBytesMax, writerTransform } =
  workerData as AppendThreadOptions;

try {
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
    onAway: (cause) => port.postMessage({ kind: "away", cause } satisfies AwayNotice),
    closing: closing.signal,
  });

  function close(): () => Promise<Reply> {
    closing.abort();
    return async () => {
      await Promise.all([notifier.close(), database.close()]);
      port.unref();
      return { kind: "done" };
    };
  }

  let answered = Promise.resolve();
  port.on("message", (request: Request) => {
    const answer = typeof request === "object" && request.kind === "close" ? close() : writer.begin(request);
    answered = answered.then(async () => port.postMessage(await answer()));
  });
  port.postMessage({ storeId } satisfies Started);
} catch (error) {
  const refused = error instanceof Error ? error.message : String(error);
  port.postMessage({ refused, isBusy: false } satisfies Started);
  port.unref();
}
