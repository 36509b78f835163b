import { isIP } from "node:net";
import { findNamed, parseRecipient } from "../recipients/recipient-name.ts";
import { forgetAddress, forgetPerson, type ForgetDeps, type Forgotten } from "../privacy/forget.ts";
import { answer, Command, fail, JSON_OPTION, type MakeCommand, type Terminal, usageError } from "./shared/command.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { withProgress } from "./shared/progress.ts";
import { printable } from "./shared/table.ts";

export const forget: MakeCommand = (terminal, exit) =>
  new Command("forget")
    .summary("erase a person, or the clicks of an IP address")
    .description(
      `Deletes the keys that the personal data of one person, or of the clicks of one IP
address, is encrypted with. The log and its hash chain stay whole; what was
encrypted shows as erased from then on, in every copy of the log that is read
without an older copy of the keys. That person never gets a message again, and
nothing more of them is recorded.

Another person who has one of their handles now is not erased. Until another
person is known to have taken it, a handle alone counts as theirs.

This cannot be undone: on a terminal it asks first, elsewhere it needs --yes.

A person's erasure includes all stored answers to requests of the days on which one
named them: a repeat of such a request is refused. An address's erasure includes
the records of its wrong tokens.

Works beside a running service, which drops what it knows of them. If it is
interrupted, the next command or start finishes it.

Not erased: data at networks, in chats and in backups of the key file. See
docs/personal-data.md.`,
    )
    .argument("<subject>", "id, handle or @handle of a person, or an IP address")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExamples:\n  reachlog forget @sara_sells\n  reachlog forget 203.0.113.7 --yes")
    .action(
      exit(async (subject, { yes, json }) => {
        const isAddress = isIP(subject) !== 0;
        if (!isAddress) parseRecipient(subject);
        if (yes !== true && !(await askToConfirm(terminal, subject))) return fail(terminal, "nothing was erased");
        await using deps = await openSession(terminal);
        const forgotten = await (isAddress
          ? forgetClicks(terminal, deps, subject)
          : forgetPerson(deps, (contacts) => findNamed(contacts, subject), ENDLESS));
        const shown = printable(subject);
        if (forgotten === undefined) {
          return fail(terminal, `no recipient is known as ${shown}: they were erased already, or never recorded`);
        }
        const { events, keys } = forgotten;
        const text = `${shown} is erased: ${events} events can no longer be read, ${keys} keys deleted\n`;
        return answer(terminal, json, { events, keys }, text);
      }),
    );

/** Throws a ServiceError (usage) without a terminal. */
async function askToConfirm({ ask }: Terminal, subject: string): Promise<boolean> {
  if (ask === undefined) throw usageError("forget cannot be undone: without a terminal it needs --yes");
  const answer = await ask(`Erase ${printable(subject)} for good? This cannot be undone. Type yes: `);
  return answer.trim().toLowerCase() === "yes";
}

/** An interrupted command ends at once: the next process that opens the log finishes what it began. */
const ENDLESS = { metadata: COMMAND_METADATA, signal: new AbortController().signal } as const;

async function forgetClicks(terminal: Terminal, deps: ForgetDeps, address: string): Promise<Forgotten | undefined> {
  const { position } = await deps.encryptedLog.head();
  return withProgress(terminal, "opening clicks", position, (onProgress) =>
    forgetAddress(deps, address, { ...ENDLESS, onProgress }),
  );
}
