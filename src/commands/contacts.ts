import type { Consent } from "../../projections/consent.ts";
import { toRecipient, type Contact } from "../../projections/contacts.ts";
import { describeConsent } from "../history/words/outreach.ts";
import { formatSentence } from "../history/words/sentence.ts";
import { discloseRecipient } from "../privacy/read-audit.ts";
import { Command, type MakeCommand } from "./shared/command.ts";
import { answerEach, fail, type Terminal, printable, table } from "./shared/terminal.ts";
import { recordRead } from "./shared/log-session.ts";
import { describeMomentJson } from "../projector/log-reader.ts";
import { RECIPIENT_HEAD, toRecipientCells, toRecipientJson } from "../recipients/recipient-json.ts";
import { AS_OF_OPTION, contactsNow, openAtMoment } from "./shared/moment.ts";
import { findNamed } from "../recipients/resolve-recipient.ts";

export const contacts: MakeCommand = (terminal) =>
  new Command("contacts")
    .summary("show all known recipients or one, with their status")
    .description(
      `Shows all known recipients with their status, or only one. Exit code 1 when that
recipient is not known.`,
    )
    .argument("[recipient]", "one recipient: id, handle or @handle")
    .option(...AS_OF_OPTION)
    .option("--json", "answer with one JSON object for each recipient")
    .examples("reachlog contacts sara_sells --as-of 2026-11-21")
    .action((wanted, options) => showContacts(terminal, options, wanted));

interface ShowOptions {
  readonly asOf?: string | undefined;
  readonly json?: true | undefined;
}

/** `wanted` undefined: all. */
async function showContacts(terminal: Terminal, { asOf, json }: ShowOptions, wanted?: string): Promise<number | void> {
  await using asked = await openAtMoment(terminal, asOf);
  const { states, ...place } = asOf === undefined ? await contactsNow(asked.store) : await asked.fold("contacts");
  const one = wanted === undefined ? undefined : findNamed(states.contacts, wanted);
  if (wanted !== undefined && one === undefined) {
    return fail(terminal, `no recipient is known as ${printable(wanted)} (${describeMomentJson(place)})`);
  }
  const found = one === undefined ? [...states.contacts.people.values()] : [one];
  const about = discloseRecipient(one && toRecipient(one));
  const resource = one === undefined ? "recipients" : "recipient";
  await recordRead(terminal, asked.store, { resource, ...about, records: found.length });
  const shown = one === undefined ? formatContacts(found) : formatContact(one);
  return answerEach(terminal, json, found.map(toRecipientJson), `${shown}(${describeMomentJson(place)})\n`);
}

export function formatContacts(people: readonly Contact[]): string {
  return table(
    RECIPIENT_HEAD,
    people.map((contact) => toRecipientCells(toRecipientJson(contact))),
  );
}

/** One recipient, and their consent in a sentence. */
export function formatContact(contact: Contact): string {
  return `${formatContacts([contact])}${formatConsent(contact)}`;
}

/** A line. */
export function formatConsent(consent: Consent): string {
  return `${printable(formatSentence(describeConsent(consent)))}\n`;
}
