import type { Recipient } from "../../events/outreach.ts";
import { findContact, type Contact } from "../../projections/contacts.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import { createSuppressionHashes } from "../outreach/suppression-hashes.ts";
import { Command, Option, configOf, EXIT, group, type MakeCommand, type Terminal } from "./command.ts";
import { showContacts } from "./contacts.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "./log-session.ts";
import { recipientOf } from "./person.ts";
import { importFile } from "./recipients/import.ts";
import { FORMATS } from "./recipients/input.ts";
import { printable } from "./table.ts";

const importRecipients: MakeCommand = (terminal, exit) =>
  new Command("import")
    .summary("add or update recipients")
    .description(
      `Columns of a file: username (or handle) and/or id, name, basis (dm_first, opt_in,
none), and any others as template fields. Handles may be @handle or the address
of a profile. A known recipient is updated. Refused rows are listed with line and
reason; the good ones go in, and the exit code is 1. basis says why you may write
to them: without one nobody does while REQUIRE_CONSENT is true. Interrupted, an
import says how far it came, and the same one again takes the rest.`,
    )
    .argument("<file>", "a .csv, .json or .jsonl; - for stdin")
    .addOption(
      new Option("--format <name>", "what the file is, where its ending does not say (stdin: csv)").choices(FORMATS),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  reachlog recipients import people.csv\n  jq .people crm.json | reachlog recipients import - --format json",
    )
    .action(exit((path, { format }) => importFile(terminal, path, format)));

const list: MakeCommand = (terminal, exit) =>
  new Command("list")
    .summary("show everybody known, as reachlog contacts does")
    .option("--json", "answer with one JSON object for each person")
    .action(exit(({ json }) => showContacts(terminal, { json: json === true })));

const suppress: MakeCommand = (terminal, exit) =>
  new Command("suppress")
    .summary("never write to this person")
    .argument("<handle>", "id, handle or @handle")
    .addHelpText("after", "\nExample:\n  reachlog recipients suppress @sara_sells")
    .action(exit((subject) => decide(terminal, "suppress", subject)));

const retry: MakeCommand = (terminal, exit) =>
  new Command("retry")
    .summary("allow one more try after a failure")
    .argument("<handle>", "id, handle or @handle")
    .addHelpText("after", "\nExample:\n  reachlog recipients retry @sara_sells")
    .action(exit((subject) => decide(terminal, "retry", subject)));

export const recipients = group(
  "recipients",
  "import, list, suppress or retry recipients",
  [importRecipients, list, suppress, retry],
  "All of them work beside a running service.",
);

async function decide(terminal: Terminal, action: "suppress" | "retry", subject: string): Promise<number> {
  const who = recipientOf(subject);
  await using stack = new AsyncDisposableStack();
  const { eventLog, vault, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
  const contact = findContact(projector.state("contacts"), who);
  if (action === "retry" && contact?.suppressed === true) {
    terminal.err(`${printable(subject)} is suppressed, and is never written to\n`);
    return EXIT.fault;
  }
  if (action === "retry" && contact?.status !== "failed") {
    terminal.err(`${printable(subject)} has no failed message to retry\n`);
    return EXIT.fault;
  }
  const newEvent: NewEvent =
    action === "suppress"
      ? suppression(contact, who, createSuppressionHashes(vault.stableKey("suppression")))
      : { type: "RecipientRetryAllowed", data: { recipient: who } };
  await eventLog.append(STREAMS.outreach, [newEvent], COMMAND_METADATA);
  const stranger = contact === undefined ? "; nobody of that name is known yet" : "";
  terminal.out(
    action === "suppress"
      ? `${printable(subject)} will never be written to${stranger}\n`
      : `${printable(subject)} is tried again in the next run\n`,
  );
  return EXIT.ok;
}

/** Marks all that is known of the person, so that none of their names leads to them once the rest is erased. */
function suppression(
  contact: Contact | undefined,
  who: Recipient,
  hashesOf: ReturnType<typeof createSuppressionHashes>,
): NewEvent {
  const { id, username } = contact ?? {};
  const known = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
  const hashes = [...new Set([...hashesOf(who), ...hashesOf(known)])];
  return { type: "RecipientSuppressed", data: { recipient: who, reason: "by_hand", hashes } };
}
