import { isIP } from "node:net";
import type { DataOf } from "../../events/catalog.ts";
import { createSuppressionHashes } from "../outreach/suppression-hashes.ts";
import { historyOfPerson } from "../history/person.ts";
import { STREAMS, type NewEvent, type EventLog } from "../log/event-log.ts";
import { findClicks } from "../privacy/find-clicks.ts";
import { findAnswers, findEncrypted, type Found, type Person } from "../privacy/find-person.ts";
import { destroyKeys } from "../privacy/apply-erasures.ts";
import type { EncryptedLog } from "../privacy/encrypted-log.ts";
import type { Projector } from "../projector/projector.ts";
import { Command, configOf, EXIT, JSON_OPTION, type MakeCommand, type Terminal } from "./command.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "./log-session.ts";
import { findPerson, recipientOf } from "./person.ts";
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
  await using stack = new AsyncDisposableStack();
  const log = await openExistingLog(configOf(terminal));
  const { eventLog, projector } = await openSession(stack, log);
  const person = isAddress ? undefined : await ofPerson(terminal, log, subject, projector);
  const found = isAddress ? await ofAddress(terminal, log, subject) : person;
  if (found === undefined) {
    terminal.err(`nobody is known as ${printable(subject)}: they were erased already, or never here\n`);
    return EXIT.fault;
  }
  const hashesOf = createSuppressionHashes(log.vault.stableKey("suppression"));
  const hashes = (person?.own ?? []).flatMap((name) => hashesOf(name));
  const position = await erase(eventLog, log, { hashes, keys: [...found.keys], spared: [...(person?.spared ?? [])] });
  await projector.until(position);
  return report(terminal, subject, found, json);
}

async function ofAddress(terminal: Terminal, log: EncryptedLog, address: string): Promise<Found | undefined> {
  const progress = startProgress(terminal, "opening clicks", (await log.head()).position);
  const found = await findClicks(log, address, progress.update);
  progress.end();
  return found.events === 0 ? undefined : found;
}

async function ofPerson(
  terminal: Terminal,
  log: EncryptedLog,
  subject: string,
  projector: Projector,
): Promise<Person | undefined> {
  const { position: to } = await log.head();
  const progress = startProgress(terminal, "reading", to);
  const history = await historyOfPerson({ store: log, to, onProgress: progress.update }, (contacts) =>
    findPerson(contacts, subject),
  );
  progress.end();
  if (history === undefined) return undefined;
  const contacts = projector.state("contacts");
  const { positions } = history;
  const person = await findEncrypted(log, { contacts, contact: findPerson(contacts, subject), positions });
  return { ...person, keys: new Set([...person.keys, ...(await findAnswers(log, person.names))]) };
}

/** Refs named in one event, which may be at most 256 KiB long. */
const KEYS_PER_EVENT = 4_000;

/** The event comes first: whoever opens the log later finishes what it asks for. Answers its position. */
async function erase(
  eventLog: EventLog,
  log: EncryptedLog,
  { hashes, keys, spared }: Required<DataOf<"PersonForgotten">>,
): Promise<number> {
  const newEvents: NewEvent[] = [];
  const others = spared.length === 0 ? {} : { spared };
  for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_EVENT) {
    const data = { hashes: at === 0 ? hashes : [], keys: keys.slice(at, at + KEYS_PER_EVENT), ...others };
    newEvents.push({ type: "PersonForgotten", data });
  }
  const { last } = await eventLog.append(STREAMS.outreach, newEvents, COMMAND_METADATA);
  destroyKeys(log.keyring, { keys, spared });
  log.keyring.replaceStateKey();
  return last;
}

function report({ out }: Terminal, subject: string, { events, keys }: Found, json: boolean): number {
  if (json) out(`${JSON.stringify({ events, keys: keys.size })}\n`);
  else out(`${printable(subject)} is erased: ${events} events can no longer be read, ${keys.size} keys deleted\n`);
  return EXIT.ok;
}
