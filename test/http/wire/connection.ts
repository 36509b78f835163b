import { connect } from "node:net";
import { createReader, type WireAnswer } from "./answers.ts";

/** Longer than the service gives any client, so that a connection it never closes fails a test instead of hanging it. */
const PATIENCE_MS = 600_000;

/** One TCP connection to a service, of which every byte is the test's own. Disposing it breaks it off. */
export interface Connection extends Disposable {
  readonly answers: readonly WireAnswer[];
  readonly isClosed: boolean;
  /** Writes bytes; resolves once the system took them, or the connection is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** The next answer is one to HEAD. */
  expectNoBody(): void;
  /** Tells the other side that nothing more comes. */
  end(): void;
  /** Takes nothing more of what the service writes. */
  stopReading(): void;
  /** Resolves once so many whole answers came, or the connection closed before. */
  answered(count: number): Promise<readonly WireAnswer[]>;
  /** Resolves with the ms since it was opened once the connection is closed by the service. */
  closed(): Promise<number>;
}

/** `from` is this machine's address to call from: each of 127.0.0.0/8 is a caller of its own. */
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
  // A reset closes it too.
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
