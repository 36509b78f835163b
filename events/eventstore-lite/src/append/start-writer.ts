import { MessageChannel, parentPort, Worker, workerData, type MessagePort } from "node:worker_threads";
import { StoreBusy, StoreUnusable } from "../errors.ts";
import type { Limits } from "../limits.ts";
import type { AwayNotice, Notice, Piece, Reply, Request } from "./writer-messages.ts";

/** The writer's first message: it can write to the log, or cannot. */
export type Started = { readonly storeId: string } | { readonly refused: string; readonly isBusy: boolean };

/** The writer of a log, seen from the code that requests appends. */
export interface Writer {
  readonly storeId: string;
  send(message: Request | Piece): void;
  /** Ends the writer. A thread ends without closing its database; send `close` first. */
  terminate(): Promise<void>;
}

export interface WriterListener {
  onReply(reply: Reply): void;
  /** The writer calls this when another process has appended to the log. */
  onNotice(notice: Notice): void;
  onAway?(notice: AwayNotice): void;
  /** Runs when the writer has died; its last requests get no reply. */
  onCrash(error: Error): void;
}

/** Connection to the code that requests appends, seen from the writer. */
export interface WriterPort {
  send(message: Started | Reply | Notice | AwayNotice): void;
  onRequest(answer: (request: Request | Piece) => void): void;
  /** Reports that the writer cannot continue. */
  onFault(error: unknown): void;
  /** Called after the last request, so that the port does not keep the process alive. */
  end(): void;
}

/** Options that the writers of all engines have. */
export interface CommonWriterOptions {
  readonly eventBytesMax: number;
  /**
   * URL of the module with the writer's transform, which completes events that the codec encoded only in part;
   * undefined if there is none.
   */
  readonly writerTransform: string | undefined;
}

/** Opens a log for writing, and answers requests from then on. */
type Serve<Options> = (port: WriterPort, options: Options) => Promise<void>;

/** Code that starts the writer of an engine, on a separate thread or on the caller's. */
export interface WriterModules<Options> {
  /** Module that calls {@link servingThread}. */
  readonly thread: URL;
  readonly loadServe: () => Promise<Serve<Options>>;
}

export interface StartOptions<Options> extends WriterModules<Options>, WriterListener {
  /** Name of the log, for errors. */
  readonly log: string;
  readonly options: Options;
  /** False to write on the caller's thread. Default: true. */
  readonly writerThread: boolean | undefined;
}

/**
 * Starts the writer of a log. Throws {@link StoreUnusable}, whose message begins with the log's name, if it cannot open
 * the log, and {@link StoreBusy} if it cannot do so now.
 */
export async function startWriter<Options extends object>({
  thread,
  loadServe,
  log,
  options,
  writerThread = true,
  ...listener
}: StartOptions<Options>): Promise<Writer> {
  const starting = Promise.withResolvers<Started>();
  let report: WriterListener["onCrash"] = starting.reject;
  const onCrash = (error: Error): void => report(error);
  const started = writerThread ? startThread(thread, options, onCrash) : startHere(await loadServe(), options, onCrash);
  const { port, send, terminate } = started;
  port.once("message", starting.resolve);
  const first = await starting.promise;
  report = listener.onCrash;
  if ("refused" in first) {
    await terminate();
    if (first.isBusy) throw new StoreBusy();
    throw new StoreUnusable(`${log}: ${first.refused}`);
  }
  port.on("message", (message: Reply | Notice | AwayNotice) => {
    if (message.kind === "notice") listener.onNotice(message);
    else if (message.kind === "away") listener.onAway?.(message);
    else listener.onReply(message);
  });
  return { storeId: first.storeId, send, terminate };
}

/** Returns the options that the writers of all engines have. */
export function toWriterOptions(options: { readonly writerTransform?: URL }, limits: Limits): CommonWriterOptions {
  return { eventBytesMax: limits.eventBytes, writerTransform: options.writerTransform?.href };
}

interface StartedWriter extends Omit<Writer, "storeId"> {
  /** Emits the writer's messages. */
  readonly port: Worker | MessagePort;
}

function startThread(module: URL, options: object, onCrash: WriterListener["onCrash"]): StartedWriter {
  const worker = new Worker(module, { workerData: options });
  let terminated = false;
  worker.on("error", onCrash);
  worker.on("exit", (code) => {
    if (!terminated) onCrash(new Error(`the writer thread ended with code ${code}`));
  });
  return {
    port: worker,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    send: (message) => worker.postMessage(message),
    async terminate() {
      terminated = true;
      await worker.terminate();
    },
  };
}

/** Starts a writer on this thread. Its messages are copied and arrive later, as between threads. */
function startHere<Options>(
  serve: Serve<Options>,
  options: Options,
  onCrash: WriterListener["onCrash"],
): StartedWriter {
  const { port1: ours, port2: writers } = new MessageChannel();
  const onFault = (error: unknown): void => onCrash(error instanceof Error ? error : new Error(String(error)));
  let answer: (request: Request | Piece) => void = () => undefined;
  let isOpen = true;
  writers.on("message", (request: Request | Piece) => {
    try {
      answer(request);
    } catch (error) {
      onFault(error);
    }
  });
  void serve(
    {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
      send: (message) => writers.postMessage(message),
      onRequest: (given) => (answer = given),
      onFault,
      end: () => (isOpen = false),
    },
    options,
  );
  return {
    port: ours,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    send: (message) => ours.postMessage(message),
    async terminate() {
      // The database is open even if a later step of opening the store failed, so it is closed here.
      if (isOpen) answer({ kind: "close" });
      ours.close();
      writers.close();
    },
  };
}

/** Serves the thread that started this one, as the module of a writer's thread. */
export async function servingThread<Options>(serve: Serve<Options>): Promise<void> {
  if (!parentPort) throw new Error("a writer's thread runs as a worker only");
  const port = parentPort;
  await serve(
    {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
      send: (message) => port.postMessage(message),
      onRequest: (answer) => void port.on("message", answer),
      onFault(error) {
        throw error;
      },
      // After the last reply, nothing keeps the thread alive. Closing the port would do the same, but not every runtime
      // can.
      end: () => port.unref(),
    },
    workerData as Options,
  );
}
