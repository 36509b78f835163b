import { createServer, connect, type AddressInfo, type Socket } from "node:net";

/** One message of PostgreSQL's protocol (https://www.postgresql.org/docs/18/protocol-message-formats.html). */
export interface Message {
  readonly from: "client" | "server";
  /** Letter of the message's type; `startup` for the first message of a connection. */
  readonly type: string;
  /** Application name that the client gave when it connected. */
  readonly application: string;
  /** Number of the connection that carries the message, from 1 on. */
  readonly connection: number;
}

/** The proxy's action on a message. */
export type Verdict =
  | "pass"
  /** Verdict on a message: it does not arrive, and client and server lose the connection. */
  | "cut"
  /** Verdict on a message: client and server lose the connection right after the message. */
  | "cut-behind"
  /** Verdict on a message: it vanishes, and neither side notices. */
  | "lose"
  /**
   * Verdict on a message: it vanishes, and so does all that the connection carries from then on, in both directions.
   */
  | "swallow"
  /** Verdict on a message: the client loses the connection, and the server gets the message once it is released. */
  | "strand"
  /**
   * Verdict on a message: it arrives later; all messages after it on this connection arrive later too, in their order.
   */
  | "delay";

const DELAY_MS = 300;

/** Proxy between a store and its server that imitates network faults in tests. */
export interface Proxy extends AsyncDisposable {
  /** URL by which a store reaches its database through the proxy. */
  readonly url: string;
  /** Sets the function that decides on every message; without one, all messages pass. */
  decide(verdict: (message: Message) => Verdict): void;
  /**
   * Delivers to the server all messages with the verdict "strand", which the proxy has held back since it closed the
   * client's connection.
   */
  release(): void;
  /** Sends the connections that clients open from now on to the server of this URL. */
  lead(url: string): void;
}

export async function startProxy(url: string): Promise<Proxy> {
  let target = new URL(url);
  const sockets = new Set<Socket>();
  let decide: (message: Message) => Verdict = () => "pass";

  const stranded: (() => void)[] = [];
  let connections = 0;

  const server = createServer({ noDelay: true }, (client) => {
    const connection = (connections += 1);
    const upstream = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    const both = [client, upstream];
    let application = "";
    let isStranded = false;
    let isSwallowed = false;
    const cut = (): void => both.forEach((socket) => socket.destroy());

    function relay(from: Message["from"], source: Socket, sink: Socket): void {
      const split = createSplit(from === "client");
      let delayed: Buffer[] | undefined;
      const pass = (message: Buffer): void => {
        if (delayed !== undefined) delayed.push(message);
        else if (!sink.destroyed) sink.write(message);
      };
      const delay = (): void => {
        if (delayed !== undefined) return;
        delayed = [];
        setTimeout(() => {
          const late = delayed ?? [];
          delayed = undefined;
          late.forEach(pass);
        }, DELAY_MS);
      };
      source.on("data", (bytes: Buffer) => {
        for (const { type, message } of split(bytes)) {
          if (type === "startup") application = nameIn(message);
          const verdict = decide({ from, type, application, connection });
          if (verdict === "cut") return cut();
          if (verdict === "swallow") isSwallowed = true;
          if (verdict === "lose" || isSwallowed) continue;
          if (verdict === "delay") delay();
          if (verdict === "strand") {
            isStranded = true;
            stranded.push(() => sink.write(message));
            setImmediate(() => source.destroy());
            continue;
          }
          pass(message);
          // Sends what is buffered and then ends the connection normally: a reset could overtake the message.
          if (verdict === "cut-behind") return both.forEach((socket) => socket.destroySoon());
        }
      });
      source.on("error", cut);
      source.on("close", () => {
        if (!isStranded) cut();
      });
      sockets.add(source);
    }
    relay("client", client, upstream);
    relay("server", upstream, client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const own = new URL(url);
  own.port = String((server.address() as AddressInfo).port);
  return {
    url: own.href,
    decide: (verdict) => void (decide = verdict),
    release() {
      for (const arrive of stranded.splice(0)) arrive();
    },
    lead: (to) => void (target = new URL(to)),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Creates the function that splits a stream of bytes into messages. All messages but a client's first begin with a
 * letter for their type.
 */
function createSplit(isClient: boolean): (bytes: Buffer) => Generator<{ type: string; message: Buffer }> {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = isClient;
  return function* split(bytes) {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const lengthAt = isFirst ? 0 : 1;
      if (rest.length < lengthAt + 4) return;
      const end = lengthAt + rest.readInt32BE(lengthAt);
      if (rest.length < end) return;
      const type = isFirst ? "startup" : String.fromCharCode(rest[0]!);
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      isFirst = false;
      yield { type, message };
    }
  };
}

function nameIn(startup: Buffer): string {
  const fields = startup.subarray(8).toString().split("\0");
  return fields[fields.indexOf("application_name") + 1] ?? "";
}
