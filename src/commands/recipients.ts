import type { Recipient } from "../../events/outreach.ts";
import { findContact, type Contact } from "../../projections/contacts.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import { createSuppressionHashes } from "../outreach/suppression-hashes.ts";
import { openStableKey } from "../service/open.ts";
import { configOf, EXIT, parse, refuseMore, UsageError, type Command, type Terminal } from "./command.ts";
import { showContacts } from "./contacts.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "./log-session.ts";
import { recipientOf } from "./person.ts";
import { importFile } from "./recipients/import.ts";
import { printable } from "./table.ts";

export const recipients: Command = {
  summary: "import, list, suppress or retry recipients",
  help: `reachlog recipients import FILE.csv|.json|.jsonl|-   add or update recipients
reachlog recipients list [--json]                      everybody known: as reachlog contacts
reachlog recipients suppress HANDLE                    never write to this person
reachlog recipients retry HANDLE                       allow one more try after a failure

Columns of an import: username (or handle) and/or id, name, basis (dm_first,
opt_in, none), and any others as template fields. Handles may be @handle or the
address of a profile. A known recipient is updated. Refused rows are listed with
line and reason; the good ones go in, and the exit code is 1. basis says why you
may write to them: without one nobody does while REQUIRE_CONSENT is true. - reads
stdin, as a CSV or as --format csv|json|jsonl says. Interrupted, an import tells
how far it came, and the same one again takes the rest.

All of them work beside a running service.
`,
  async run(args, terminal) {
    const options = { json: { type: "boolean", default: false }, format: { type: "string" } } as const;
    const { values, positionals } = parse(args, options, 2);
    const [action, subject] = positionals;
    if (action === "list") refuseMore(positionals, 1);
    if (action === "list") return showContacts(terminal, { json: values.json });
    if (subject === undefined)
      throw new UsageError("recipients wants import FILE, list, suppress HANDLE or retry HANDLE");
    if (action === "import") return importFile(terminal, subject, values.format);
    if (action === "suppress" || action === "retry") return mark(terminal, action, subject);
    throw new UsageError(`recipients knows no "${printable(action ?? "")}"`);
  },
};

async function mark(terminal: Terminal, action: "suppress" | "retry", subject: string): Promise<number> {
  const who = recipientOf(subject);
  const config = configOf(terminal);
  await using stack = new AsyncDisposableStack();
  const { eventLog, projector } = await openSession(stack, await openExistingLog(config));
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
      ? suppression(contact, who, createSuppressionHashes(openStableKey(config, "suppression")))
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
