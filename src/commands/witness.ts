// This file has the commands that run a witness, a server that cosigns the heads of other logs.
import { parsePublicKey } from "eventstore-lite/proof";
import { type AnsweredHead, serveHeads } from "../log/witness-server.ts";
import { usageError } from "../platform/service-error.ts";
import { untilAborted } from "../platform/signals.ts";
import { readKeyOption } from "./audit/verify.ts";
import { absolutePath, Command, group, type MakeCommand, parsePort } from "./shared/command.ts";
import { printable } from "./shared/terminal-answers-and-exit-codes.ts";

const serveWitness: MakeCommand = (terminal) =>
  new Command("serve")
    .summary("cosign the heads of logs, on a second machine")
    .description(
      `A witness as C2SP tlog-witness describes it: POST /add-checkpoint. It cosigns a
log's signed head only if that head holds all events of the last one that it
cosigned, and stores that one durably. It refuses a log that was rolled back or
shows two histories. It does not start if it has its key, but the stored heads are
gone. It sees no events. Runs until it is interrupted; put a proxy with TLS in
front of it if other machines reach it.`,
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
      const options = { folder: data, name, logKeys, mayForget: acceptLostMemory, host, port };
      const answered = ({ status, head }: AnsweredHead): void => terminal.out(`${status} ${printable(head)}\n`);
      const failed = (sentence: string): void => terminal.err(`${sentence}\n`);
      await using serving = await serveHeads(options, { answered, failed });
      terminal.out(`WITNESS_URL=http://${host}:${serving.port}\n`);
      terminal.out(`WITNESS_PUBLIC_KEY=${serving.publicKey}\n`);
      await untilAborted(terminal.signal);
    });

function parseName(text: string): string {
  if (!/^[^\s+]{1,200}$/u.test(text)) throw usageError("--name needs a name without spaces and plus signs");
  return text;
}

export const witness = group("witness", "cosign the heads of logs", [serveWitness]);
