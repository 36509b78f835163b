import { isIP } from "node:net";
import { erasureGround, erasureRequester, type ErasureReason } from "../../events/personal.ts";
import { usageError } from "../platform/service-error.ts";
import { findNamed, parseRecipient } from "../recipients/resolve-recipient.ts";
import { certifyErasure, forgetAddress, forgetPerson, type Forgotten } from "../privacy/forget.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand, Option } from "./shared/command.ts";
import { answer, fail, type Terminal, printable } from "./shared/terminal.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import type { Session } from "../service/session.ts";
import { checkNewFile, makeNewFile } from "../platform/new-file.ts";
import { withProgress } from "./shared/progress.ts";
import { describeFault } from "../platform/system-fault.ts";

export const forget: MakeCommand = (terminal) =>
  new Command("forget")
    .summary("erase a recipient, or the clicks of an IP address")
    .description(
      `Deletes the keys that the personal data of one recipient, or of the clicks of one
IP address, is encrypted with. The log and its hash chain stay whole; what was
encrypted shows as erased from then on, in every copy of the log that is read
without an older copy of the keys. That recipient never gets a message again, and
nothing more of them is recorded.

Another recipient who has one of their handles now is not erased. Until another
recipient is known to have taken it, a handle alone counts as theirs.

This cannot be undone: on a terminal it asks first, elsewhere it needs --yes.

A recipient's erasure includes all stored answers to requests of the days on which
one named them: a repeat of such a request is refused. An address's erasure
includes the records of its wrong tokens.

With --json, id and position are of the first event that records the erasure.
More than 4,000 keys take several events next to each other. The certificate
proves each.

Works beside a running service, which drops what it knows of them. If it is
interrupted, the next command or start finishes it.

Not erased: data at networks, in chats and in backups of the key file. See
docs/personal-data.md.`,
    )
    .argument("<recipient>", "id, handle or @handle of a recipient, or an IP address")
    .addOption(new Option("--ground <why>", "why, by GDPR article 17(1)").choices(GROUNDS))
    .addOption(new Option("--requested-by <party>", "on whose request").choices(REQUESTERS))
    .option(
      "--certificate <file>",
      "write a certificate of the erasure to a new file: what was erased, why, and the proof of its event",
      absolutePath,
    )
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .examples("reachlog forget @sara_sells", "reachlog forget 203.0.113.7 --yes")
    .action(async (name, { ground, requestedBy, certificate, yes, json }) => {
      const isAddress = isIP(name) !== 0;
      if (!isAddress) parseRecipient(name);
      if (certificate !== undefined) checkNewFile(certificate);
      if (yes !== true && !(await askToConfirm(terminal, name))) return fail(terminal, "nothing was erased");
      await using deps = await openSession(terminal);
      const reason = { ...(ground && { ground }), ...(requestedBy && { requested_by: requestedBy }) };
      // An interrupted command ends at once: the next process that opens the log finishes what it began.
      const options = { metadata: COMMAND_METADATA, signal: new AbortController().signal, reason };
      const forgotten = await (isAddress
        ? withProgress(terminal, "opening clicks", deps.projector.position, (onProgress) =>
            forgetAddress(deps, name, { ...options, onProgress }),
          )
        : forgetPerson(deps, (contacts) => findNamed(contacts, name), options));
      const shown = printable(name);
      if (forgotten === undefined) {
        return fail(terminal, `no recipient is known as ${shown}: they were erased already, or never recorded`);
      }
      const { events, keys, id, position } = forgotten;
      const text = `${shown} is erased: ${events} events can no longer be read, ${keys} keys deleted\n`;
      answer(terminal, json, { events, keys, id, position }, text);
      return certificate === undefined ? undefined : await certify(terminal, certificate, deps, forgotten, reason);
    });

/** Throws a ServiceError (usage) without a terminal. */
async function askToConfirm({ ask }: Terminal, name: string): Promise<boolean> {
  if (ask === undefined) throw usageError("forget cannot be undone: without a terminal it needs --yes");
  const answer = await ask(`Erase ${printable(name)} for good? This cannot be undone. Type yes: `);
  return answer.trim().toLowerCase() === "yes";
}

const GROUNDS = erasureGround.anyOf.map((one) => one.const);
const REQUESTERS = erasureRequester.anyOf.map((one) => one.const);

/** Writes the certificate, one JSON object. Where that fails the erasure stays, and the operator gets what proves it. */
async function certify(
  terminal: Terminal,
  file: string,
  { encryptedLog, logClock }: Session,
  forgotten: Forgotten,
  reason: ErasureReason,
) {
  try {
    const certificate = await certifyErasure(encryptedLog, forgotten, reason, logClock.now);
    await makeNewFile(file, `${JSON.stringify(certificate, undefined, 2)}\n`);
    return undefined;
  } catch (fault) {
    const { id, position, lastPosition } = forgotten;
    const others = lastPosition === position ? "" : `, and the same with each position up to ${lastPosition}`;
    const proof = `prove it with reachlog audit prove ${id}${others}`;
    const why = fault instanceof Error ? describeFault(fault) : String(fault);
    terminal.err(`no certificate was written: ${why}\n`);
    return fail(terminal, `the erasure is event ${id} at position ${position}: ${proof}`);
  }
}
