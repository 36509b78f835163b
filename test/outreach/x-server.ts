import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as bodyOf } from "node:stream/consumers";
import { OWN } from "../harness/in-process/social-network.ts";

/** Answer of the fake X to a request to send. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of the answer: a string is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  /** Fault of the connection instead of a normal answer: no answer, or a connection that closes before or during it. */
  readonly fault?: "silence" | "reset" | "cut";
  /** True if the message is in the conversation, although the answer may say otherwise. */
  readonly delivered?: boolean;
}

export interface XServer extends AsyncDisposable {
  readonly url: string;
  /** Answers to the next requests to send, in this order. All later requests succeed. */
  readonly answers: Answer[];
  /** Ids of the recipients in the requests to send, in order. */
  readonly asked: string[];
}

interface Message {
  readonly id: string;
  readonly to: string;
  readonly text: string;
  readonly created_at: string;
}

/**
 * Starts a fake X over real HTTP. All people exist and accept messages, and none of them writes. `clock` also dates its
 * answers.
 */
export async function startXServer(clock: () => number): Promise<XServer> {
  const answers: Answer[] = [];
  const asked: string[] = [];
  const taken: Message[] = [];

  const send = async (to: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { text } = JSON.parse(await bodyOf(incoming)) as { text: string };
    const message = { id: String(500 + taken.length), to, text, created_at: new Date(clock()).toISOString() };
    const made = { status: 201, body: { data: { dm_conversation_id: `${OWN.id}-${to}`, dm_event_id: message.id } } };
    const answer = answers.shift() ?? { ...made, delivered: true };
    asked.push(to);
    if (answer.delivered === true) taken.push(message);
    if (answer.fault === "silence") return;
    if (answer.fault === "reset") return void incoming.socket.destroy();
    write(response, { ...made, ...answer });
  };

  const write = (response: ServerResponse, { status = 200, headers = {}, body = "", fault }: Answer): void => {
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const date = new Date(clock()).toUTCString();
    response.writeHead(status, { date, "content-length": String(bytes.length), ...headers });
    if (fault !== "cut") return void response.end(bytes);
    response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => response.socket?.destroy());
  };

  const read = (url: URL, conversation: string | undefined): Answer => {
    if (url.pathname === "/2/users") {
      const ids = url.searchParams.get("ids")?.split(",") ?? [];
      return {
        body: { data: ids.map((id) => ({ id, username: `user_${id}`, name: "Nora", receives_your_dm: true })) },
      };
    }
    const data = taken.filter(({ to }) => to === conversation).map((dm) => ({ ...dm, sender_id: OWN.id }));
    return { body: data.length === 0 ? { meta: { result_count: 0 } } : { data: data.toReversed() } };
  };

  const server = createServer((incoming, response) => {
    const url = new URL(incoming.url ?? "/", "http://x");
    const participant = /^\/2\/dm_conversations\/with\/(\d+)\//.exec(url.pathname)?.[1];
    if (incoming.method === "POST") void send(participant ?? "", incoming, response);
    else write(response, read(url, participant));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
