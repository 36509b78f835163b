import { hideCodes } from "../networks/hide-personal-codes.ts";
import { exportLog } from "./audit/export-log.ts";
import { importLog } from "./audit/import-log.ts";
import { checkProof, consistency, prove } from "./audit/prove-and-check-proofs.ts";
import { verify } from "./audit/verify.ts";
import { Command, createNumberParser, group, type MakeCommand } from "./shared/command.ts";
import { fail, printable } from "./shared/terminal-answers-and-exit-codes.ts";
import { formatPublicKey } from "eventstore-lite/proof";
import { signHeadNow } from "../log/sign-heads-and-prove-events.ts";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { openExistingLog, openExistingStoredLog, recordRead } from "./shared/open-log-and-record-reads.ts";
import { makeNewFile } from "../platform/new-file.ts";
import { EXPORT_FORMATS } from "../log/export-formats.ts";

const head: MakeCommand = (terminal) =>
  new Command("head")
    .summary("sign the log's position and hash as they are now")
    .description(
      `Signs the log's position and hash as they are now, in the form of a C2SP
checkpoint. Keep it where writers of the log cannot change it: later, reachlog
audit verify --head proves that the log still holds all of these events.
Exit code 1 if the log lacks events of its last checkpoint.`,
    )
    .option("--out <file>", "a new file; without it, stdout")
    .option(
      "--public-key",
      "print the public key, with which auditors check heads; the signing key is reachlog.signing.pem beside the log, created if missing",
    )
    .examples("reachlog audit head --out /mnt/elsewhere/head-of-monday")
    .action(async ({ out, publicKey }) => {
      await using store = await openExistingStoredLog(terminal);
      const { checkpoints } = store;
      if (publicKey === true) {
        return terminal.out(`${formatPublicKey((await checkpoints.loadKey()).publicKey)}\n`);
      }
      const signed = await signHeadNow(store, checkpoints, systemClock);
      if ("loss" in signed) return fail(terminal, `${signed.loss}; nothing was signed`);
      if (out === undefined) return terminal.out(signed.note);
      // An existing file is never replaced, because the older signed head proves that the log is unchanged since an
      // earlier time, and a newer head cannot.
      return await makeNewFile(out, signed.note);
    });

/** Number of newest past events that `audit tail` shows before it follows new ones. */
const TAIL_EVENTS = 20;

const tail: MakeCommand = (terminal) =>
  new Command("tail")
    .summary("print the newest events and follow the log until interrupted")
    .option(
      "--from <position>",
      "the position to begin at; default: the newest events",
      createNumberParser("--from needs a position"),
    )
    .option("--json", "write each event as a JSON object")
    .examples("reachlog audit tail --from 1")
    .action(async ({ from, json }) => {
      await using store = await openExistingLog(terminal);
      const { position: newest } = await store.head();
      await recordRead(terminal, store, { resource: "stream" });
      const start = from ?? Math.max(1, newest - TAIL_EVENTS + 1);
      for await (const recorded of store.subscribe({ from: start, signal: terminal.signal })) {
        const event = hideCodes(recorded);
        const { position, time, type, stream, data } = event;
        const text = `${position} ${time} ${type} ${printable(stream)} ${printable(JSON.stringify(data))}\n`;
        terminal.out(json === true ? EXPORT_FORMATS.jsonl.line(event) : text);
      }
    });

export const audit = group(
  "audit",
  "verify, follow, export and inspect the event log",
  [verify, head, prove, checkProof, consistency, tail, exportLog, importLog],
  "All of them except import work beside a running service.",
);
