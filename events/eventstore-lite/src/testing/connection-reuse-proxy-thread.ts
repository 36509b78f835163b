/**
 * Thread of a pool of connections in front of a test server: a connection that one client has left serves the next
 * client that connects in the same way. PostgreSQL starts a process for each connection, which takes longer than most
 * tests.
 */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/** Number of connections without a client to keep; beyond it the oldest one is closed. */
const IDLE_MAX = 40;

/** Requests before the start of a session (https://www.postgresql.org/docs/18/protocol-message-formats.html). */
const CANCEL = 80_877_102;
const ENCRYPT = [80_877_103, 80_877_104];

/** A connection to the server. */
interface Session {
  readonly socket: Socket;
  /**
   * First message of the client that opened the connection. Only clients that send the same one get this connection,
   * because it holds all their settings.
   */
  readonly startup: Buffer;
  /** Messages by which the server told the first client that the session has started. */
  readonly greeting: Buffer[];
  /** Forwards the server's bytes to the current client. */
  onBytes: ((bytes: Buffer) => void) | undefined;
  onClose: () => void;
  /** Number of requests that the server has not answered yet. */
  pending: number;
  /** True if messages were sent whose request is not complete yet. */
  isOpen: boolean;
  /** Letter of the server's transaction status; `I`: in no transaction. */
  status: string;
  /** Runs once the server has answered all requests. */
  onAnswered: () => void;
  /** Resolves when the session is as new, so that it can serve a client. */
  ready: Promise<void>;
}

const port = workerData as number;
const idle: Session[] = [];

/** Opens a session; its greeting goes to `client` as it arrives. */
function open(startup: Buffer, client: Socket): Session {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const session: Session = {
    socket,
    startup,
    greeting: [],
    onBytes: undefined,
    onClose: () => client.destroy(),
    pending: 1,
    isOpen: false,
    status: "",
    onAnswered: () => undefined,
    ready: Promise.resolve(),
  };
  const scan = createScan(({ type, status }) => {
    if (type !== "Z") return;
    session.pending -= 1;
    session.status = status;
  });
  socket.on("data", (bytes: Buffer) => {
    if (session.status === "") session.greeting.push(bytes);
    scan(bytes);
    session.onBytes?.(bytes);
    if (session.pending === 0) session.onAnswered();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    const at = idle.indexOf(session);
    if (at >= 0) idle.splice(at, 1);
    session.onClose();
  });
  socket.write(startup);
  return session;
}

function take(startup: Buffer): Session | undefined {
  const at = idle.findLastIndex((session) => session.startup.equals(startup));
  return at < 0 ? undefined : idle.splice(at, 1)[0];
}

/**
 * Keeps the session of a client that has left, for the next client: waits until the server has answered all complete
 * requests, then resets it. If the client left in the middle of a request or transaction, closes the session.
 */
function release(session: Session): void {
  session.onBytes = undefined;
  session.onClose = () => undefined;
  session.onAnswered = () => undefined;
  if (session.pending > 0 && !session.isOpen) return void (session.onAnswered = () => release(session));
  if (session.isOpen || session.status !== "I") return void session.socket.destroy();
  session.pending = 1;
  session.ready = new Promise((resolve) => {
    session.onAnswered = () => {
      session.onAnswered = () => undefined;
      resolve();
    };
  });
  session.socket.write(RESET);
  idle.push(session);
  if (idle.length > IDLE_MAX) idle.shift()!.socket.end(TERMINATE);
}

const TERMINATE = Buffer.from([0x58, 0, 0, 0, 4]);
/**
 * Forgets all that the session's client has prepared, set, locked or listened to: the statements of `DISCARD ALL`, but
 * for `DISCARD PLANS`, which would have the log's functions planned again for each client.
 */
const RESET = queryMessage(
  "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES",
);

function queryMessage(statement: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${statement}\0`);
  message.writeInt32BE(message.length - 1, 1);
  return message;
}

/** Serves a client with a session until either of them ends. `rest`: bytes behind the client's first message. */
function serve(client: Socket, session: Session, rest: Buffer): void {
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    release(session);
    client.destroy();
  };
  session.onBytes = (bytes) => forward(bytes, session.socket, client);
  session.onClose = () => {
    isOver = true;
    client.end();
  };
  const scan = createScan(({ type, start }) => {
    if (type === "X") terminatedAt = start;
    else if (type === "Q" || type === "S" || type === "F") {
      session.pending += 1;
      session.isOpen = false;
    } else session.isOpen = true;
  });
  let terminatedAt: number | undefined;
  const onBytes = (bytes: Buffer): void => {
    if (isOver) return;
    scan(bytes);
    const passed = terminatedAt === undefined ? bytes : bytes.subarray(0, Math.max(0, terminatedAt));
    if (passed.length > 0) forward(passed, client, session.socket);
    if (terminatedAt !== undefined) end();
  };
  client.on("data", onBytes);
  client.on("end", end);
  client.on("close", end);
  if (rest.length > 0) onBytes(rest);
}

function forward(bytes: Buffer, source: Socket, sink: Socket): void {
  if (sink.destroyed || sink.write(bytes)) return;
  source.pause();
  const resume = (): void => void source.resume();
  sink.once("drain", resume).once("close", resume);
}

interface Scanned {
  readonly type: string;
  /** Status of the transaction, if the type is `Z` (ReadyForQuery). */
  readonly status: string;
  /** Index of the message in the bytes that arrived last; negative if it began in earlier ones. */
  readonly start: number;
}

/**
 * Creates the function that finds where the messages begin in a stream of bytes, given piece by piece. It reports a
 * message as soon as its first bytes, up to the length or status, are there.
 */
function createScan(onMessage: (message: Scanned) => void): (bytes: Buffer) => void {
  const head = Buffer.alloc(6);
  let filled = 0;
  let skipped = 0;
  return (bytes) => {
    let start = -filled;
    for (let at = 0; at < bytes.length;) {
      if (skipped > 0) {
        const step = Math.min(skipped, bytes.length - at);
        skipped -= step;
        at += step;
        continue;
      }
      if (filled === 0) start = at;
      head[filled++] = bytes[at++]!;
      const type = String.fromCharCode(head[0]!);
      const needed = type === "Z" ? 6 : 5;
      if (filled < needed) continue;
      skipped = head.readInt32BE(1) - (needed - 1);
      filled = 0;
      onMessage({ type, status: type === "Z" ? String.fromCharCode(head[5]!) : "", start });
    }
  };
}

const server = createServer({ noDelay: true }, (client) => {
  let read = Buffer.alloc(0);
  client.on("error", () => undefined);
  client.on("data", function onStart(bytes: Buffer) {
    read = Buffer.concat([read, bytes]);
    while (read.length >= 8 && read.length >= read.readInt32BE(0)) {
      const code = read.readInt32BE(4);
      const length = read.readInt32BE(0);
      const startup = read.subarray(0, length);
      read = read.subarray(length);
      if (ENCRYPT.includes(code)) {
        client.write("N");
        continue;
      }
      client.off("data", onStart);
      if (code === CANCEL)
        return void connect({ port, host: "127.0.0.1" })
          .on("error", () => undefined)
          .end(startup);
      const kept = take(startup);
      if (kept === undefined) return serve(client, open(startup, client), read);
      client.pause();
      kept.onClose = () => client.destroy();
      return void kept.ready.then(() => {
        kept.greeting.forEach((message) => client.write(message));
        serve(client, kept, read);
        client.resume();
      });
    }
  });
});
server.listen(0, "127.0.0.1", () => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  parentPort!.postMessage((server.address() as AddressInfo).port);
});
