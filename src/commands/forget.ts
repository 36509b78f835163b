import { isIP } from "node:net";
import { findNamed, recipientOf } from "../outreach/person.ts";
import { forgetAddress, forgetPerson, type ForgetDeps, type Forgotten } from "../privacy/forget.ts";
import { Command, configOf, EXIT, JSON_OPTION, type MakeCommand, type Terminal } from "./command.ts";
import { COMMAND_METADATA, openSession } from "./log-session.ts";
import { startProgress } from "./progress.ts";
import { printable } from "./table.ts";

export const forget: MakeCommand = (terminal, exit) =>
  new Command("forget")
    .summary("erase a person, or the clicks of an IP address")
    .description(
      `Deletes the keys that the personal data of one person, or of the clicks of one IP
address, is encrypted with. The log and its hash chain stay whole; what was
encrypted shows as erased from then on, in every copy of the log that is read
without an older copy of the keys. Nobody ever writes to that person again, and
nothing more of them is recorded.

Somebody else who has one of their handles now is not reached. As long as nobody
is known to have taken it, a handle alone counts as theirs.

With a person go all kept answers to requests of the days on which one named
them: who repeats such a request is refused. With an address go the records of
its wrong tokens.

Works beside a running service, which gives up what it knows of them.
Interrupted, it is finished by the next command or start.

Not reached: what networks, chats and backups of the key file hold. See
docs/personal-data.md.`,
    )
    .argument("<subject>", "id, handle or @handle of a person, or an IP address")
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExamples:\n  reachlog forget @sara_sells\n  reachlog forget 203.0.113.7")
    .action(exit((subject, { json }) => forgetSubject(terminal, subject, json === true)));

async function forgetSubject(terminal: Terminal, subject: string, json: boolean): Promise<number> {
  const isAddress = isIP(subject) !== 0;
  if (!isAddress) recipientOf(subject);
  await using deps = await openSession(configOf(terminal));
  const forgotten = await (isAddress ? ofAddress(terminal, deps, subject) : ofPerson(deps, subject));
  if (forgotten === undefined) {
    terminal.err(`nobody is known as ${printable(subject)}: they were erased already, or never here\n`);
    return EXIT.fault;
  }
  return report(terminal, subject, forgotten, json);
}

/** An interrupted command ends at once: the next process that opens the log finishes what it began. */
const ENDLESS = { metadata: COMMAND_METADATA, signal: new AbortController().signal } as const;

function ofPerson(deps: ForgetDeps, subject: string): Promise<Forgotten | undefined> {
  return forgetPerson(deps, (contacts) => findNamed(contacts, subject), ENDLESS);
}

async function ofAddress(terminal: Terminal, deps: ForgetDeps, address: string): Promise<Forgotten | undefined> {
  const progress = startProgress(terminal, "opening clicks", (await deps.encryptedLog.head()).position);
  const forgotten = await forgetAddress(deps, address, { ...ENDLESS, onProgress: progress.update });
  progress.end();
  return forgotten;
}

function report({ out }: Terminal, subject: string, forgotten: Forgotten, json: boolean): number {
  const { events, keys } = forgotten;
  if (json) out(`${JSON.stringify({ events, keys })}\n`);
  else out(`${printable(subject)} is erased: ${events} events can no longer be read, ${keys} keys deleted\n`);
  return EXIT.ok;
}
