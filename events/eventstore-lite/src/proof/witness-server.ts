import type { KeyObject } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { formatVerifierKey, type Cosigner } from "./signed-note.ts";
import { loadSigningKey } from "./signing-key.ts";
import { openWitness, type WitnessAnswer } from "./witness.ts";

/** Maximum size of a request: twice that of a checkpoint with its signatures and 63 hashes. */
const BODY_BYTES_MAX = 256 * 1024;

/** Time to receive a whole request, in ms. */
const REQUEST_MS_MAX = 10_000;

export interface WitnessServerOptions {
  /** The folder with the witness's key, and with the heads that it cosigned. */
  readonly folder: string;
  /** The witness's name in cosignatures. */
  readonly name: string;
  readonly logKeys: readonly KeyObject[];
  /** True if the witness may start with an empty record although the heads that its key cosigned are gone. */
  readonly mayForget: boolean;
  readonly host: string;
  /** Port to listen on; 0 for any free port. */
  readonly port: number;
  /** Returns the time by which the witness signs, in ms since 1970. */
  readonly clock: () => number;
}

export interface WitnessListener {
  /**
   * The server calls this after each answer with its HTTP status, and with the log's name as the submitted head gives
   * it.
   */
  readonly answered: (one: { readonly status: number; readonly head: string }) => void;
  /**
   * The server calls this with a sentence for the operator if it could not answer a request because of its own fault.
   */
  readonly failed: (sentence: string) => void;
}

export interface WitnessServer extends AsyncDisposable {
  readonly port: number;
  /**
   * Public key that verifies the witness's cosignatures, as {@link formatVerifierKey} writes it. A witness cosigns a
   * log's head only if it extends the heads seen before, so that a rewritten log is noticed.
   */
  readonly publicKey: string;
}

/**
 * Serves a witness of https://c2sp.org/tlog-witness until it is disposed. Throws {@link StoreUnusable} if the heads
 * that its key cosigned are gone, {@link SigningKeyRefused}, or an error of the port.
 */
export async function serveWitness(options: WitnessServerOptions, listener: WitnessListener): Promise<WitnessServer> {
  const { folder, name, logKeys, mayForget, host, port, clock } = options;
  await using stack = new AsyncDisposableStack();
  const mayBegin = mayForget || !existsSync(keyFile(folder));
  const identity = openIdentity(folder, name);
  const file = join(folder, "witness.sqlite");
  const witness = stack.use(openWitness({ file, ...identity, logKeys, mayBegin, clock }));
  const server = createAnswerer(listener, witness.addCheckpoint);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  stack.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const opened = stack.move();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    publicKey: formatVerifierKey(identity.cosigner),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const keyFile = (folder: string): string => join(folder, "witness.pem");

function openIdentity(folder: string, name: string): { readonly cosigner: Cosigner; readonly privateKey: KeyObject } {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { privateKey, publicKey } = loadSigningKey(keyFile(folder));
  return { cosigner: { name, publicKey }, privateKey };
}

function createAnswerer(
  { answered, failed }: WitnessListener,
  answerOf: (submission: string) => WitnessAnswer,
): Server {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isSubmission = request.method === "POST" && request.url === "/add-checkpoint";
    const body = isSubmission ? await readBody(request) : undefined;
    if (body === undefined) return void response.writeHead(isSubmission ? 413 : 404, { connection: "close" }).end();
    const { status, type, body: text } = answerOf(body);
    answered({ status, head: /\n\n([^\n]{1,200})\n/.exec(body)?.[1] ?? "unreadable" });
    response.writeHead(status, { "content-type": type }).end(text);
  };
  return createServer({ requestTimeout: REQUEST_MS_MAX }, (request, response) => {
    answer(request, response).catch((fault: unknown) => {
      failed(fault instanceof Error ? fault.message : String(fault));
      response.writeHead(500, { connection: "close" }).end();
    });
  });
}

/** Reads the body of a request; undefined if it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
