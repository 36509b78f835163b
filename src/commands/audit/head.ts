import { writeFileSync } from "node:fs";
import { formatPublicKey } from "eventstore-lite";
import { signHeadNow } from "../../log/sign-head-now.ts";
import { systemClock } from "../../platform/clock.ts";
import { Command, configOf, EXIT, type MakeCommand } from "../command.ts";
import { openExistingStoredLog } from "../log-session.ts";
import { makeNewFile } from "../new-file.ts";

export const head: MakeCommand = (terminal, exit) =>
  new Command("head")
    .summary("sign the log's position and hash as they are now")
    .description(
      `Signs the log's position and hash as they are now, in the form of a C2SP
checkpoint: keep it where whoever can write the log cannot write, and
reachlog audit verify --head proves later that the log still holds all of it.
Exit code 1 when the log does not hold what its last checkpoint knew.`,
    )
    .option("--out <file>", "a new file; without it, stdout")
    .option(
      "--public-key",
      "print the key that auditors check it with instead; the key itself is reachlog.signing.pem beside the log, made when needed",
    )
    .addHelpText("after", "\nExample:\n  reachlog audit head --out /mnt/elsewhere/head-of-monday")
    .action(
      exit(async ({ out, publicKey }) => {
        await using store = await openExistingStoredLog(configOf(terminal));
        const { checkpoints } = store;
        if (publicKey === true) {
          terminal.out(`${formatPublicKey((await checkpoints.loadKey()).publicKey)}\n`);
          return EXIT.ok;
        }
        const signed = await signHeadNow(store, checkpoints, systemClock);
        if ("loss" in signed) {
          terminal.err(`${signed.loss}; nothing was signed\n`);
          return EXIT.fault;
        }
        if (out === undefined) terminal.out(signed.note);
        // Existing files are not overwritten: an older head proves something that a newer one cannot.
        else await makeNewFile(out, (descriptor) => writeFileSync(descriptor, signed.note));
        return EXIT.ok;
      }),
    );
