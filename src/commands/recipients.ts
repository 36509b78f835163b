import { readFileSync } from "node:fs";
import { extname } from "node:path";
import type { Recipient } from "../../events/outreach.ts";
import { findContact, type Contact } from "../../projections/contacts.ts";
import { STREAMS, type Fact, type Journal } from "../journal.ts";
import { parseRecipients, type RecipientsFile, type RecipientsFormat } from "../outreach/recipients-file.ts";
import { createMarks } from "../outreach/marks.ts";
import { openLastingKey, openLog } from "../parts.ts";
import { configOf, EXIT, parse, UsageError, type Command, type Terminal } from "./command.ts";
import { showContacts } from "./contacts.ts";
import { COMMAND_CAUSE, openExistingLog, openSession } from "./log-session.ts";
import { recipientOf } from "./person.ts";
import { startProgress } from "./progress.ts";
import { printable } from "./table.ts";

export const recipients: Command = {
  summary: "import, list, suppress or retry recipients",
  help: `reachlog recipients import FILE.csv|.json|.jsonl   add or update recipients
reachlog recipients list [--json]                     everybody known: as reachlog contacts
reachlog recipients suppress HANDLE                   never write to this person
reachlog recipients retry HANDLE                      allow one more try after a failure

Columns of an import: username (or handle) and/or id, name, basis (dm_first,
opt_in, none), and any others as template fields. Handles may be @handle or the
address of a profile. A known recipient is updated. Refused rows are listed with
line and reason; the good ones go in, and the exit code is 1.

All of them work beside a running service.
`,
  async run(args, terminal) {
    const { values, positionals } = parse(args, { json: { type: "boolean", default: false } });
    const [action, subject, ...more] = positionals;
    if (more.length > 0)
      throw new UsageError(`recipients takes one at a time: what about ${more.map(printable).join(", ")}?`);
    if (action === "list") return showContacts(terminal, { json: values.json });
    if (subject === undefined)
      throw new UsageError("recipients wants import FILE, list, suppress HANDLE or retry HANDLE");
    if (action === "import") return importFile(terminal, subject);
    if (action === "suppress" || action === "retry") return mark(terminal, action, subject);
    throw new UsageError(`recipients knows no "${printable(action ?? "")}"`);
  },
};

/** Events appended at once: one fsync for many rows, without holding other appends up. */
const IMPORT_BATCH = 1_000;

async function importFile(terminal: Terminal, path: string): Promise<number> {
  const parsed = parseRecipients(readFileSync(path), formatOf(path));
  await using stack = new AsyncDisposableStack();
  const { journal, projector } = await openSession(stack, await openLog(configOf(terminal)));
  const known = projector.state("contacts");
  const updated = parsed.rows.filter(({ recipient }) => findContact(known, recipient)?.listed === true).length;
  await appendRows(terminal, journal, parsed);
  terminal.out(`${parsed.rows.length - updated} added, ${updated} updated, ${parsed.refused.length} refused\n`);
  for (const { line, of } of parsed.duplicates)
    terminal.out(`line ${line}: the same person as line ${of}; the later row counts\n`);
  for (const { line, reason } of parsed.refused) terminal.err(`line ${line}: ${printable(reason)}\n`);
  return parsed.refused.length === 0 ? EXIT.ok : EXIT.fault;
}

async function appendRows(terminal: Terminal, journal: Journal, { rows }: RecipientsFile): Promise<void> {
  const progress = startProgress(terminal, "importing", rows.length);
  for (let at = 0; at < rows.length; at += IMPORT_BATCH) {
    const facts = rows.slice(at, at + IMPORT_BATCH).map(({ recipient }): Fact => {
      const { id, username, name, basis, fields } = recipient;
      const who = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
      const data = { recipient: who, ...(name === undefined ? {} : { name }), basis, fields: { ...fields } };
      return { type: "RecipientAdded", data: { ...data, source: "list" } };
    });
    await journal.append(STREAMS.outreach, facts, COMMAND_CAUSE);
    progress.update(at + facts.length);
  }
  progress.end();
}

function formatOf(path: string): RecipientsFormat {
  const format = extname(path).slice(1).toLowerCase();
  if (format === "csv" || format === "json" || format === "jsonl") return format;
  if (format === "tsv" || format === "txt") return "csv";
  throw new UsageError("recipients import wants a file that ends in .csv, .json or .jsonl");
}

async function mark(terminal: Terminal, action: "suppress" | "retry", subject: string): Promise<number> {
  const who = recipientOf(subject);
  const config = configOf(terminal);
  await using stack = new AsyncDisposableStack();
  const { journal, projector } = await openSession(stack, await openExistingLog(config));
  const contact = findContact(projector.state("contacts"), who);
  if (action === "retry" && contact?.suppressed === true) {
    terminal.err(`${printable(subject)} is suppressed, and is never written to\n`);
    return EXIT.fault;
  }
  if (action === "retry" && contact?.status !== "failed") {
    terminal.err(`${printable(subject)} has no failed message to retry\n`);
    return EXIT.fault;
  }
  const fact: Fact =
    action === "suppress"
      ? suppression(contact, who, createMarks(openLastingKey(config, "suppression")))
      : { type: "RecipientRetryAllowed", data: { recipient: who } };
  await journal.append(STREAMS.outreach, [fact], COMMAND_CAUSE);
  terminal.out(
    action === "suppress"
      ? `${printable(subject)} will never be written to\n`
      : `${printable(subject)} is tried again in the next run\n`,
  );
  return EXIT.ok;
}

/** Marks all that is known of the person, so that none of their names leads to them once the rest is erased. */
function suppression(contact: Contact | undefined, who: Recipient, marksOf: ReturnType<typeof createMarks>): Fact {
  const { id, username } = contact ?? {};
  const known = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
  const marks = [...new Set([...marksOf(who), ...marksOf(known)])];
  return { type: "RecipientSuppressed", data: { recipient: who, reason: "by_hand", marks } };
}
