import { existsSync, mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import {
  formatVerifierKey,
  loadSigningKey,
  openWitness,
  parsePublicKey,
  StoreUnusable,
  type Witness,
  type WitnessAnswer,
} from "eventstore-lite";
import type { KeyObject } from "node:crypto";
import { systemClock } from "../platform/clock.ts";
import { untilAborted } from "../platform/signals.ts";
import { readKeyOption } from "./audit/verify.ts";
import { absolutePath, Command, group, type MakeCommand, parsePort } from "./shared/command.ts";
import { type Terminal, printable } from "./shared/terminal.ts";
import { ServiceError, usageError } from "../platform/service-error.ts";

/** Twice the size of a checkpoint with its signatures and 63 hashes. */
const BODY_BYTES_MAX = 256 * 1024;

/** Ms to receive a whole request. */
const REQUEST_MS_MAX = 10_000;

const serveWitness: MakeCommand = (terminal) =>
  new Command("serve")
    .summary("cosign the heads of logs, on a second machine")
    .description(
      `A witness of C2SP tlog-witness: POST /add-checkpoint. It cosigns a log's signed
head only if that holds all events of the last head that it cosigned, and
remembers that one durably. A log that was rolled back, or that shows two
histories, is refused. It does not start with a key whose remembered heads are
gone. It sees no events. Runs until it is interrupted; put a proxy with TLS
before it where others reach it.`,
    )
    .requiredOption("--data <folder>", "where it keeps its key and the heads that it cosigned", absolutePath)
    .requiredOption(
      "--log-key <keys>",
      "the logs' keys (reachlog audit head --public-key), as files or in base64, separated by commas",
      (text) => text.split(","),
    )
    .option("--name <name>", "its name in cosignatures, such as witness.example", parseName, "reachlog-witness")
    .option("--host <host>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on (0: any free one)", parsePort, 4020)
    .option("--accept-lost-memory", "begin although the heads that this key cosigned are gone")
    .examples("reachlog witness serve --data /var/lib/witness --log-key log.pub")
    .action(async ({ data, logKey, name, host, port, acceptLostMemory = false }) => {
      const logKeys = logKey.map((key) => readKeyOption("--log-key", key, parsePublicKey));
      const mayBegin = acceptLostMemory || !existsSync(keyFile(data));
      const identity = openIdentity(data, name);
      using witness = openRemembering(join(data, "witness.sqlite"), { ...identity, logKeys, mayBegin });
      const server = serveAnswers(terminal, witness.addCheckpoint);
      await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
      const address = server.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      terminal.out(`WITNESS_URL=http://${host}:${bound}\n`);
      terminal.out(`WITNESS_PUBLIC_KEY=${formatVerifierKey(identity.cosigner)}\n`);
      await untilAborted(terminal.signal);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });

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

/** Throws a ServiceError (configuration) if the heads that its key cosigned are gone. */
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

function parseName(text: string): string {
  if (!/^[^\s+]{1,200}$/u.test(text)) throw usageError("--name needs a name without spaces and plus signs");
  return text;
}

function serveAnswers({ out, err }: Terminal, answerOf: (submission: string) => WitnessAnswer) {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isSubmission = request.method === "POST" && request.url === "/add-checkpoint";
    const body = isSubmission ? await readBody(request) : undefined;
    if (body === undefined) return void response.writeHead(isSubmission ? 413 : 404, { connection: "close" }).end();
    const { status, type, body: text } = answerOf(body);
    out(`${status} ${printable(/\n\n([^\n]{1,200})\n/.exec(body)?.[1] ?? "unreadable")}\n`);
    response.writeHead(status, { "content-type": type }).end(text);
  };
  return createServer({ requestTimeout: REQUEST_MS_MAX }, (request, response) => {
    answer(request, response).catch((fault: unknown) => {
      err(`${fault instanceof Error ? fault.message : String(fault)}\n`);
      response.writeHead(500, { connection: "close" }).end();
    });
  });
}

/** Undefined: it is too large. */
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

export const witness = group("witness", "cosign the heads of logs", [serveWitness]);
