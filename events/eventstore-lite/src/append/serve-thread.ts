import { parentPort } from "node:worker_threads";
import type { AwayNotice, Notice, Piece, Reply, Request } from "./messages.ts";

/** The thread's answer to a message with the options of a log: it can write to the log, or cannot. */
export type Started = { readonly storeId: string } | { readonly refused: string; readonly isBusy: boolean };

/** Sends a message to the store that a writer thread serves. */
export type Post = (message: Reply | Notice | AwayNotice) => void;

/** A log that a writer thread has opened for a store. */
export interface OpenedWriter {
  readonly storeId: string;
  /** Handles the store's next message; the answer to `close` is the last message that it posts. */
  onMessage(message: Request | Piece): void;
}

/**
 * Serves one store after another on this thread. The first message for each store holds the options of its log; once
 * the log is closed, the thread waits for the next one. `isBusy`: true for an error that passes by itself.
 */
export function serveThread<Options>(
  open: (options: Options, post: Post) => Promise<OpenedWriter>,
  isBusy: (error: unknown) => boolean = () => false,
): void {
  if (!parentPort) throw new Error("a writer thread runs as a worker only");
  const port = parentPort;
  let opened: OpenedWriter | undefined;

  async function begin(options: Options): Promise<void> {
    try {
      opened = await open(options, (message) => {
        if (message.kind === "done" && message.isClosed) opened = undefined;
        port.postMessage(message);
      });
      port.postMessage({ storeId: opened.storeId } satisfies Started);
    } catch (error) {
      const refused = error instanceof Error ? error.message : String(error);
      port.postMessage({ refused, isBusy: isBusy(error) } satisfies Started);
    }
  }

  port.on("message", (message: Options | Request | Piece) => {
    if (opened === undefined) void begin(message as Options);
    else opened.onMessage(message as Request | Piece);
  });
}
