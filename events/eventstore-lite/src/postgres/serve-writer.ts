import { createTransform, loadWriterTransform } from "../append/writer-transform.ts";
import { isPiece, type AwayNotice, type Reply } from "../append/writer-messages.ts";
import type { CommonWriterOptions, Started, WriterPort } from "../append/start-writer.ts";
import { openDatabase } from "./database.ts";
import { createNotifier } from "./notify-after-append.ts";
import { createWriter } from "./writer.ts";

export interface PostgresWriterOptions extends CommonWriterOptions {
  readonly url: string;
  readonly schema: string;
  readonly storeId: string;
  readonly epoch: string;
  readonly usesServerClock: boolean;
}

/** Connects to the server, and answers the requests that arrive at `port` until one closes it. */
export async function servePostgresWriter(port: WriterPort, options: PostgresWriterOptions): Promise<void> {
  const { url, schema, storeId, epoch, usesServerClock, eventBytesMax, writerTransform } = options;
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
      onAway: (cause) => port.send({ kind: "away", cause } satisfies AwayNotice),
      closing: closing.signal,
    });

    function close(): () => Promise<Reply> {
      closing.abort();
      return async () => {
        await Promise.all([notifier.close(), database.close()]);
        port.end();
        return { kind: "done" };
      };
    }

    let answered = Promise.resolve();
    port.onRequest((request) => {
      if (isPiece(request)) throw new Error("a log on a server takes no append in pieces");
      const answer = typeof request === "object" && request.kind === "close" ? close() : writer.begin(request);
      answered = answered.then(async () => port.send(await answer())).catch(port.onFault);
    });
    port.send({ storeId } satisfies Started);
  } catch (error) {
    const refused = error instanceof Error ? error.message : String(error);
    port.send({ refused, isBusy: false } satisfies Started);
    port.end();
  }
}
