import type { KeyObject } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import {
  formatVerifierKey,
  loadSigningKey,
  openWitness,
  StoreUnusable,
  type Witness,
  type WitnessAnswer,
} from "eventstore-lite";
import { systemClock } from "../platform/clock.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Maximum size of a request: twice that of a checkpoint with its signatures and 63 hashes. */
const BODY_BYTES_MAX = 256 * 1024;

/** Time to receive a whole request, in ms. */
const REQUEST_MS_MAX = 10_000;

interface WitnessOptions {
  /** The folder with the witness's key, and with the heads that it cosigned. */
  readonly folder: string;
  /** The witness's name in cosignatures. */
  readonly name: string;
  readonly logKeys: readonly KeyObject[];
  /** True to begin although the heads that its key cosigned are gone. */
  readonly mayForget: boolean;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** A submitted head, as the line of its origin's signature names it, and the HTTP status of the answer. */
export interface AnsweredHead {
  readonly status: number;
  readonly head: string;
}

interface WitnessListener {
  readonly answered: (one: AnsweredHead) => void;
  /** Called if a request ended in a fault of the witness. */
  readonly failed: (sentence: string) => void;
}

/**
 * Serves a witness of C2SP tlog-witness until it is disposed. Throws a ServiceError (configuration), or an error of the
 * port.
 */
export async function serveHeads(options: WitnessOptions, listener: WitnessListener) {
  const { folder, name, logKeys, mayForget, host, port } = options;
  await using stack = new AsyncDisposableStack();
  const mayBegin = mayForget || !existsSync(keyFile(folder));
  const identity = openIdentity(folder, name);
  const witness = stack.use(openRemembering(join(folder, "witness.sqlite"), { ...identity, logKeys, mayBegin }));
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

function openIdentity(folder: string, name: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { privateKey, publicKey } = loadSigningKey(keyFile(folder));
  return { cosigner: { name, publicKey }, privateKey };
}

interface RememberingOptions extends ReturnType<typeof openIdentity> {
  readonly logKeys: readonly KeyObject[];
  readonly mayBegin: boolean;
}

/** Throws a ServiceError (configuration) if the heads that the witness's key cosigned are gone. */
function openRemembering(file: string, options: RememberingOptions): Witness {
  try {
    return openWitness({ file, ...options, clock: systemClock });
  } catch (fault) {
    if (!(fault instanceof StoreUnusable)) throw fault;
    const remedy =
      "With its key it would cosign a log that was rolled back. Put the file back; or move witness.pem away, and give " +
      "the logs the new key that is printed; or, to begin with this key, add --accept-lost-memory";
    throw new ServiceError("configuration", `${fault.message}. ${remedy}`, { cause: fault });
  }
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

/** Undefined if the body is too large. */
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
