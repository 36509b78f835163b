import type { Contact } from "../../projections/contacts.ts";
import { Command, readConfig, EXIT, type MakeCommand, type Terminal } from "./shared/command.ts";
import { openExistingLog } from "./shared/log-session.ts";
import type { EncryptedLog } from "../privacy/encrypted-log.ts";
import { parseMoment, type Moment } from "../projector/moment.ts";
import { AS_OF_OPTION, describeMoment, foldToMoment, stateNow } from "./shared/moment.ts";
import { findNamed } from "../recipients/recipient-name.ts";
import { printable, table } from "./shared/table.ts";

export const contacts: MakeCommand = (terminal, exit) =>
  new Command("contacts")
    .summary("show all known recipients or one, with their status")
    .description(
      `Shows all known recipients with their status, or only one. Exit code 1 when that
person is not known.`,
    )
    .argument("[recipient]", "one person: id, handle or @handle")
    .option(...AS_OF_OPTION)
    .option("--json", "answer with one JSON object for each person")
    .addHelpText("after", "\nExample:\n  reachlog contacts sara_sells --as-of 2026-11-21")
    .action(exit((wanted, { asOf: at, json }) => showContacts(terminal, { wanted, asOf: at, json: json === true })));

export interface ShowContacts {
  /** Undefined: all. */
  readonly wanted?: string | undefined;
  readonly asOf?: string | undefined;
  readonly json: boolean;
}

export async function showContacts(terminal: Terminal, { wanted, json, ...options }: ShowContacts): Promise<number> {
  const config = readConfig(terminal);
  const moment = parseMoment(options.asOf, config.outreach.timezone);
  await using store = await openExistingLog(config);
  const { state, ...place } =
    options.asOf === undefined ? await stateNow(store, "contacts") : await foldContacts(terminal, store, moment);
  const one = wanted === undefined ? undefined : findNamed(state, wanted);
  if (wanted !== undefined && one === undefined) {
    terminal.err(`no recipient is known as ${printable(wanted)} (${describeMoment(place)})\n`);
    return EXIT.fault;
  }
  const people = one === undefined ? [...state.people.values()] : [one];
  if (json) for (const contact of people) terminal.out(`${JSON.stringify(contact)}\n`);
  else terminal.out(`${formatContacts(people)}(${describeMoment(place)})\n`);
  return EXIT.ok;
}

async function foldContacts(terminal: Terminal, store: EncryptedLog, moment: Moment) {
  const { states, position, time } = await foldToMoment(terminal, store, ["contacts"], moment);
  return { state: states.contacts, position, time };
}

/** People, a line each. */
export function formatContacts(people: readonly Contact[]): string {
  return table(["username", "id", "basis", "status", "skipped for"], people.map(row));
}

function row({ username, id, basis, status, suppressed, skipped }: Contact): string[] {
  return [username ?? "", id ?? "", basis, suppressed ? "suppressed" : status, skipped.join(", ")];
}
