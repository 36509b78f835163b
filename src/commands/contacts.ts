import type { Consent } from "../../projections/consent.ts";
import { toRecipient, type Contact } from "../../projections/contacts.ts";
import { describeConsent } from "../history/words/outreach.ts";
import { formatSentence } from "../history/words/sentence.ts";
import { discloseRecipient } from "../privacy/read-audit.ts";
import { Command, type MakeCommand } from "./shared/command.ts";
import { answerEach, fail, type Terminal, printable, table } from "./shared/terminal.ts";
import { recordRead } from "./shared/log-session.ts";
import { describeMomentJson } from "../projector/log-reader.ts";
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
  /** Only recipients whose reply waits for a decision. */
  readonly held?: true | undefined;
}

/** `wanted` undefined: all. */
export async function showContacts(
  terminal: Terminal,
  { asOf, json, held }: ShowOptions,
  wanted?: string,
): Promise<number | void> {
  await using asked = await openAtMoment(terminal, asOf);
  const { states, ...place } = asOf === undefined ? await contactsNow(asked.store) : await asked.fold("contacts");
  const one = wanted === undefined ? undefined : findNamed(states.contacts, wanted);
  if (wanted !== undefined && one === undefined) {
    return fail(terminal, `no recipient is known as ${printable(wanted)} (${describeMomentJson(place)})`);
  }
  const all = one === undefined ? [...states.contacts.people.values()] : [one];
  const found = held === true ? all.filter((contact) => contact.held) : all;
  const about = discloseRecipient(one && toRecipient(one));
  const resource = one === undefined ? "recipients" : "recipient";
  await recordRead(terminal, asked.store, { resource, ...about, records: found.length });
  const shown = one === undefined ? formatContacts(found) : formatContact(one);
  return answerEach(terminal, json, found.map(toContactJson), `${shown}(${describeMomentJson(place)})\n`);
}

/** Members that programs get. A new one stays hidden until it is named: some hold codes of recipients' own links. */
const SHOWN = [
  ...([
    "id",
    "username",
    "name",
    "timezone",
    "fields",
    "listed",
    "status",
    "suppressed",
    "held",
    "held_at",
    "received",
    "replied",
  ] as const),
  ...(["variant", "attempted_at", "again", "skipped", "refused_after", "positions", "reads"] as const),
  ...(["basis", "consent", "tracking", "inbound", "wrote_at"] as const),
] satisfies readonly (keyof Contact)[];

/** A recipient as programs get it, without members that are absent. */
export type ContactJson = Pick<Contact, (typeof SHOWN)[number]>;

function toContactJson(contact: Contact): ContactJson {
  return Object.fromEntries(SHOWN.map((member) => [member, contact[member]])) as unknown as ContactJson;
}

export function formatContacts(people: readonly Contact[]): string {
  return table(["username", "id", "basis", "tracking", "status", "skipped for"], people.map(row));
}

function row({ username, id, basis, tracking, status, suppressed, held, skipped }: Contact): string[] {
  const shown = suppressed ? "suppressed" : held ? "held" : status;
  return [username ?? "", id ?? "", basis, tracking.status, shown, skipped.join(", ")];
}

/** One recipient, and their consent in a sentence. */
export function formatContact(contact: Contact): string {
  return `${formatContacts([contact])}${formatConsent(contact)}`;
}

/** A line. */
export function formatConsent(consent: Consent): string {
  return `${printable(formatSentence(describeConsent(consent)))}\n`;
}
