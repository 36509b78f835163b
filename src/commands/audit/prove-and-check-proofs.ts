import { readFileSync } from "node:fs";
import { parsePublicKey, parseVerifierKey } from "eventstore-lite/proof";
import { requireEvent } from "../../history/find-event.ts";
import { EXPORT_FORMATS } from "../../log/export-formats.ts";
import { shownBy } from "../../log/export-formats/write-export-text.ts";
import { openEventProof, proveConsistency } from "../../log/event-and-consistency-proofs.ts";
import { proveEvent } from "../../log/sign-heads-and-prove-events.ts";
import { hideCodes } from "../../networks/hide-personal-codes.ts";
import { isoTime, systemClock } from "../../platform/clock-ids-and-timers.ts";
import { makeNewFile } from "../../platform/new-file.ts";
import { usageError } from "../../platform/service-error.ts";
import { withPath } from "../../platform/describe-system-errors.ts";
import { discloseEvent } from "../../privacy/record-personal-data-read.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { openExistingLog, openExistingStoredLog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { answer, EXIT, fail, printable } from "../shared/terminal-answers-and-exit-codes.ts";
import { readKeyOption } from "./verify.ts";

export const prove: MakeCommand = (terminal) =>
  new Command("prove")
    .summary("prove one event to a reader who does not have the log")
    .description(
      `Writes a C2SP tlog-proof: the bytes of the event as the log stores them, their
place in the Merkle tree, and the signed head of that tree. Personal data in it
stays encrypted, so the proof stays valid when a key is deleted: it then proves
that these encrypted bytes stood at that position.`,
    )
    .argument("<event>", "the id of the event, or its position")
    .option("--out <file>", "a new file; without it, stdout", absolutePath)
    .option(
      "--plain",
      "also write FILE.jsonl: the event, decrypted if its keys still exist, without codes of recipients' own links",
    )
    .examples("reachlog audit prove 42 --out event-42.tlog-proof")
    .action(async (event, { out, plain }) => {
      if (plain === true && out === undefined) throw usageError("--plain writes a second file: give --out");
      await using log = plain === true ? await openExistingLog(terminal) : undefined;
      await using stored = log === undefined ? await openExistingStoredLog(terminal) : undefined;
      const store = log ?? stored!;
      const found = await requireEvent(store, event);
      const { position } = found;
      if (log !== undefined)
        await recordRead(terminal, log, { resource: "event", ...discloseEvent(found), records: 1 });
      const proved = await proveEvent(store, store.checkpoints, systemClock, position);
      if ("loss" in proved) return fail(terminal, `${proved.loss}; nothing was proved`);
      if (out === undefined) terminal.out(proved.proof);
      else await makeNewFile(out, proved.proof);
      if (log === undefined) return undefined;
      for await (const one of log.readStored({ from: position, to: position })) {
        const [shown = one] = await shownBy(log.open)([one]);
        await makeNewFile(`${out}.jsonl`, EXPORT_FORMATS.jsonl.line(hideCodes(shown)));
      }
      return undefined;
    });

export const checkProof: MakeCommand = (terminal) =>
  new Command("check")
    .summary("check a proof that audit prove wrote, without the log")
    .description(
      `Checks that the log's key signed the head in the proof, and that the event's
bytes stand at their position in the tree of that head. Reads no log and no
settings. Prints in one sentence what is proved. Exit code 1 if nothing is.`,
    )
    .argument("<file>", "what audit prove wrote", absolutePath)
    .requiredOption("--public-key <key>", "the log's key (reachlog audit head --public-key), as a file or in base64")
    .option(
      "--witness-key <key>",
      "also require the cosignature of this witness, as reachlog witness serve prints its key",
    )
    .option(...JSON_OPTION)
    .examples("reachlog audit check event-42.tlog-proof --public-key log.pub")
    .action((file, { publicKey, witnessKey, json }) => {
      const key = readKeyOption("--public-key", publicKey, parsePublicKey);
      const witness =
        witnessKey === undefined ? undefined : readKeyOption("--witness-key", witnessKey, parseVerifierKey);
      const proof = withPath(file, () => readFileSync(file, "utf8"));
      const found = openEventProof(proof, key, witness);
      if (typeof found === "string") {
        answer(terminal, json, { ok: false, fault: found }, `not proved: ${found}\n`);
        return EXIT.fault;
      }
      const { stream, id, type, recordedMs, data, position, checkpoint, cosignedAt } = found;
      const recorded = isoTime(recordedMs);
      const { origin, position: size, time = "an unknown time" } = checkpoint;
      const cosigned = cosignedAt === undefined ? "" : ` and cosigned at ${isoTime(cosignedAt * 1_000)}`;
      const shown = { ok: true, origin, position, id, type, stream, time: recorded, head: { position: size, time } };
      const text =
        `proved: exactly these bytes, ${printable(type)} ${printable(id)} of ${recorded}, stood at position ` +
        `${position} of ${printable(origin)} when its head of ${size} events was signed at ${printable(time)}${cosigned}\n`;
      return answer(terminal, json, { ...shown, data }, text);
    });

export const consistency: MakeCommand = (terminal) =>
  new Command("consistency")
    .summary("prove that a newer signed head extends an older one")
    .description(
      `Proves from the log that the newer of two signed heads holds all events of the
older one, unchanged and in order. The proof is checked against the signed roots.
Exit code 1 if it fails.`,
    )
    .argument("<head1>", "a signed head, as audit head writes it", absolutePath)
    .argument("<head2>", "another one of the same log", absolutePath)
    .option("--public-key <key>", "the public key of both, as a file or in base64; default: the log's own")
    .option(...JSON_OPTION)
    .examples("reachlog audit consistency head-of-monday head-of-friday")
    .action(async (head1, head2, { publicKey, json }) => {
      await using store = await openExistingStoredLog(terminal);
      const key =
        publicKey === undefined
          ? (await store.checkpoints.loadKey()).publicKey
          : readKeyOption("--public-key", publicKey, parsePublicKey);
      const notes = [head1, head2].map((file) => withPath(file, () => readFileSync(file, "utf8")));
      const found = await proveConsistency(store, notes, key);
      const fault = typeof found === "string" ? found : undefined;
      const proof = typeof found === "string" ? [] : found.map((hash) => Buffer.from(hash).toString("base64"));
      const held = `the newer head holds all events of the older one; the proof has ${proof.length} hashes`;
      answer(terminal, json, { ok: fault === undefined, fault: fault ?? null, proof }, `${fault ?? held}\n`);
      return fault === undefined ? EXIT.ok : EXIT.fault;
    });
