import type { WireAnswer } from "../http/wire/parse-http-answers.ts";
import { requestBytes } from "../http/wire/raw-request-bytes.ts";
import { openConnection, type Connection } from "../http/wire/connection.ts";
import { TOKEN } from "../harness/process.ts";
import type { FuzzRequest } from "./arbitrary-requests.ts";

/** Sends requests over connections that are reused. */
export interface Wire extends Disposable {
  /** Resolves with undefined if the service closes the connection without an answer. */
  send(request: FuzzRequest): Promise<WireAnswer | undefined>;
}

/**
 * Number of client addresses that send wrong tokens. They are many, because the service blocks an address for a minute
 * after ten wrong tokens.
 */
const GUESSERS = 1_000;

export function openWire(url: string): Wire {
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  let guesses = 0;

  const nextGuesser = (): string => {
    guesses = (guesses + 1) % GUESSERS;
    return `127.66.${guesses >> 8}.${guesses & 255}`;
  };
  const connect = async (from?: string): Promise<Connection> => {
    const kept = from === undefined ? idle.pop() : undefined;
    if (kept !== undefined && !kept.isClosed) return kept;
    const fresh = await openConnection(url, from);
    all.add(fresh);
    return fresh;
  };

  return {
    async send(request) {
      const isGuess = request.caller === "wrong" || request.path.includes("/session");
      const connection = await connect(isGuess ? nextGuesser() : undefined);
      if (request.method === "HEAD") connection.expectNoBody();
      const count = connection.answers.length + 1;
      await connection.write(bytesOf(url, request));
      const answer = (await connection.answered(count))[count - 1];
      if (answer === undefined || connection.isClosed || isGuess) {
        connection[Symbol.dispose]();
        all.delete(connection);
      } else {
        idle.push(connection);
      }
      return answer;
    },
    [Symbol.dispose]() {
      for (const connection of all) connection[Symbol.dispose]();
    },
  };
}

function bytesOf(url: string, { operation, method, path, host, caller, headers, type, body }: FuzzRequest): Buffer {
  const contentType = type ?? operation.body?.type ?? "application/json";
  const lines = [
    ...(host === undefined ? [] : [`Host: ${host}`]),
    ...(caller === "none" ? [] : [`Authorization: Bearer ${caller === "known" ? TOKEN : "a-wrong-one"}`]),
    ...headers,
    ...(body === undefined ? [] : [`Content-Type: ${contentType}`]),
  ];
  const content = body === undefined ? {} : { body: body.bytes };
  return requestBytes(url, { method: method ?? operation.method, path, headers: lines, ...content });
}
