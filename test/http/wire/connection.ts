import { connect } from "node:net";
import { createReader, type WireAnswer } from "./parse-http-answers.ts";

/**
 * Maximum wait for the service in ms, longer than any of its timeouts. A connection that the service never closes then
 * fails a test instead of hanging it.
 */
const PATIENCE_MS = 600_000;

/** One TCP connection to a service, over which a test sends any bytes. Disposing it closes it at once. */
export interface Connection extends Disposable {
  readonly answers: readonly WireAnswer[];
  readonly isClosed: boolean;
  /** Writes bytes; resolves once the system has accepted them or the connection is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Says that the next answer is to a HEAD request, so no body follows its head. */
  expectNoBody(): void;
  /** Signals to the service that no more bytes follow. */
  end(): void;
  /** Stops reading from the service. */
  stopReading(): void;
  /** Resolves once `count` complete answers have arrived or the connection is closed. */
  answered(count: number): Promise<readonly WireAnswer[]>;
  /** Resolves once the connection is closed, with the ms that it was open. */
  closed(): Promise<number>;
}

/**
 * Opens a connection. `from` is the local address to connect from; the service treats each address of 127.0.0.0/8 as a
 * separate caller.
 */
export async function openConnection(url: string, from = "127.0.0.1"): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const openedAt = performance.now();
  const reader = createReader();
  const socket = connect({ host: hostname, port: Number(port), localAddress: from });
  let changed = Promise.withResolvers<void>();
  const change = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  socket.on("connect", change).on("close", change);
  // A connection that is reset also closes, so its error needs no handling here.
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    reader.take(Buffer.from(bytes));
    change();
  });
  const until = async (isDone: () => boolean): Promise<void> => {
    const late = setTimeout(() => changed.reject(new Error(`nothing happened in ${PATIENCE_MS} ms`)), PATIENCE_MS);
    try {
      while (!isDone() && !socket.destroyed) await changed.promise;
    } finally {
      clearTimeout(late);
    }
  };
  await until(() => !socket.connecting);
  return {
    answers: reader.answers,
    get isClosed() {
      return socket.destroyed;
    },
    write: (bytes) =>
      new Promise((resolve) => {
        if (socket.destroyed) return resolve();
        socket.once("close", resolve);
        socket.write(bytes, () => {
          socket.off("close", resolve);
          resolve();
        });
      }),
    expectNoBody: () => reader.expectNoBody(),
    end: () => void socket.end(),
    stopReading: () => void socket.pause(),
    async answered(count) {
      await until(() => reader.answers.length >= count);
      return reader.answers;
    },
    async closed() {
      await until(() => false);
      return performance.now() - openedAt;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
