import { findContact } from "../../../projections/contacts.ts";
import { STREAMS, type NewEvent, type EventLog } from "../../log/event-log.ts";
import { parseRecipients, type ImportedRow, type RecipientsFormat } from "../../outreach/recipients-file.ts";
import { openLog } from "../../service/open.ts";
import { configOf, EXIT, type Terminal } from "../command.ts";
import { COMMAND_METADATA, openSession } from "../log-session.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../table.ts";
import { formatOf, readInput } from "./input.ts";

/**
 * Rows appended at once: their keys are one transaction of the key file, which writes most of its pages each time. Many
 * more would hold up the appends of a service beside the import.
 */
const CHUNK_ROWS = 5_000;

export async function importFile(
  terminal: Terminal,
  path: string,
  format: RecipientsFormat | undefined,
): Promise<number> {
  const read: RecipientsFormat = formatOf(path, format);
  const { rows, refused, duplicates } = parseRecipients(await readInput(path), read);
  const config = configOf(terminal);
  await using stack = new AsyncDisposableStack();
  const { eventLog, projector } = await openSession(stack, await openLog(config));
  const contacts = projector.state("contacts");
  const known = rows.map(({ recipient }) => findContact(contacts, recipient));
  const updated = known.filter((contact) => contact?.listed === true).length;
  // Whoever wrote to us first has agreed, whatever the file says.
  const unagreed = rows.filter(({ recipient }, at) => recipient.basis === "none" && known[at]?.inbound !== true).length;
  const taken = await appendRows(terminal, eventLog, rows);
  if (taken < rows.length) {
    const last = rows[taken - 1];
    const upTo = last === undefined ? "" : `, up to line ${last.line}`;
    terminal.err(
      `interrupted: ${taken} of ${rows.length} rows were taken${upTo}; the same import again takes the others\n`,
    );
    return Number(terminal.signal.reason);
  }
  terminal.out(`${rows.length - updated} added, ${updated} updated, ${refused.length} refused\n`);
  terminal.out(consentLine(unagreed, config.outreach.requireConsent) + fieldsLine(rows));
  for (const { line, of } of duplicates)
    terminal.out(`line ${line}: the same person as line ${of}; the later row counts\n`);
  for (const { line, reason } of refused) terminal.err(`line ${line}: ${printable(reason)}\n`);
  return refused.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Appends chunk after chunk until all are taken or the command is interrupted. Answers how many rows were taken. */
async function appendRows(terminal: Terminal, eventLog: EventLog, rows: readonly ImportedRow[]): Promise<number> {
  const progress = startProgress(terminal, "importing", rows.length);
  let taken = 0;
  let before: Promise<unknown> = Promise.resolve();
  while (taken < rows.length && !terminal.signal.aborted) {
    const newEvents = rows.slice(taken, taken + CHUNK_ROWS).map(added);
    // Encoded, with its keys on the disk, while the chunk before is written.
    const appending = eventLog.append(STREAMS.outreach, newEvents, COMMAND_METADATA);
    // Looked at in the next round, or never when the chunk before failed.
    appending.catch(() => {});
    await before;
    before = appending;
    taken += newEvents.length;
    progress.update(taken);
  }
  await before;
  progress.end();
  return taken;
}

function added({ recipient: { id, username, name, basis, fields } }: ImportedRow): NewEvent {
  const recipient = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
  return {
    type: "RecipientAdded",
    data: { recipient, ...(name === undefined ? {} : { name }), basis, fields, source: "list" },
  };
}
/** Columns named at the most: a file of JSON objects may have others in each. */
const NAMED_MAX = 50;

/** What an import says of those to whom nobody writes; nothing where there are none. */
function consentLine(unagreed: number, requireConsent: boolean): string {
  if (unagreed === 0) return "";
  const then = requireConsent
    ? "and nobody writes to them while REQUIRE_CONSENT is true (see basis in the help)"
    : "and are written to all the same, since REQUIRE_CONSENT is false";
  return `${unagreed} of them without consent: their basis is none or missing, ${then}\n`;
}

/** The columns that became template fields; nothing where none did. */
function fieldsLine(rows: readonly ImportedRow[]): string {
  const names = new Set<string>();
  for (const { recipient } of rows) for (const name of Object.keys(recipient.fields)) names.add(name);
  if (names.size === 0) return "";
  const more = names.size > NAMED_MAX ? ` and ${names.size - NAMED_MAX} more` : "";
  return `template fields: ${[...names].slice(0, NAMED_MAX).map(printable).join(", ")}${more}\n`;
}
