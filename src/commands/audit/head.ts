import { writeSync } from "node:fs";
import { formatPublicKey, loadSigningKey } from "eventstore-lite";
import { findLoss } from "../../log/find-loss.ts";
import { signHead } from "../../log/sign-head.ts";
import { systemClock } from "../../platform/clock.ts";
import { logFiles } from "../../log/log-files.ts";
import { configOf, EXIT, parse } from "../command.ts";
import { openStoredLog } from "../log-session.ts";
import { makeNewFile } from "../new-file.ts";
import type { AuditAction } from "./action.ts";

export const head: AuditAction = {
  usage: "head [--out FILE] | head --public-key",
  help: `head     signs the log's position and hash as they are now, in the form of a
         C2SP checkpoint: keep it where whoever can write the log cannot write,
         and verify --head proves later that the log still holds all of it.
         Exits with 1 when the log does not hold what its last checkpoint knew.
         With --public-key it prints the key that auditors check it with: the
         key itself is reachlog.signing.pem beside the log, made when needed
`,
  async run(args, terminal) {
    const options = { out: { type: "string" }, "public-key": { type: "boolean", default: false } } as const;
    const { values } = parse(args, options);
    const config = configOf(terminal);
    await using store = await openStoredLog(config);
    const files = logFiles(config.log.file);
    const key = loadSigningKey(files.signingKey);
    if (values["public-key"]) {
      terminal.out(`${formatPublicKey(key.publicKey)}\n`);
      return EXIT.ok;
    }
    // A key that signed two histories of one log would prove neither.
    const loss = await findLoss(store, files.checkpoint, key);
    if (loss !== undefined) {
      terminal.err(`${loss.sentence}; nothing was signed\n`);
      return EXIT.fault;
    }
    const note = signHead(store, await store.head(), key, systemClock);
    if (values.out === undefined) terminal.out(note);
    // Existing files are not overwritten: an older head proves something that a newer one cannot.
    else await makeNewFile(values.out, (descriptor) => void writeSync(descriptor, note));
    return EXIT.ok;
  },
};
