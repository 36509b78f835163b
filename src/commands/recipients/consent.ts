import { sleep } from "../../platform/clock.ts";
import { isFault, parseConsent, type ConsentMember } from "../../recipients/parse-consent.ts";
import { recordConsent } from "../../recipients/record-consent.ts";
import { parseRecipient } from "../../recipients/recipient-name.ts";
import { formatConsent } from "../contacts.ts";
import { Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { answer, type Terminal } from "../shared/terminal.ts";
import { COMMAND_METADATA, openSession } from "../shared/log-session.ts";
import { printable } from "../shared/table.ts";
import { usageError } from "../../platform/service-error.ts";

export const consentCommand: MakeCommand = (terminal, exit) =>
  new Command("consent")
    .summary("record a recipient's consent, with its evidence")
    .description(
      `Records on what grounds you may write to a recipient (--basis) and whether
clicks by links of their own may be recorded (--tracking), each with its evidence:
when, where, and to which wording. What you do not give stays; new evidence
replaces the former as a whole. To revoke granted tracking erases their recorded
clicks. A repeat changes nothing.`,
    )
    .argument("<handle>", "id, handle or @handle")
    .option("--basis <word>", "dm_first, opt_in or none")
    .option("--consent-at <time>", "when: a day, or a time with its offset")
    .option("--consent-source <text>", "where: the address of a form, or a few words")
    .option("--consent-text <text>", "the wording, or its version")
    .option("--tracking <word>", "granted, denied or unknown")
    .option("--at <time>", "the same three for tracking: when")
    .option("--source <text>", "where")
    .option("--text <text>", "the wording, or its version")
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      `
Examples:
  reachlog recipients consent @sara_sells --basis opt_in --consent-at 2026-03-02
  reachlog recipients consent @sara_sells --tracking denied --source mail`,
    )
    .action(
      exit((name, { json, ...options }) => {
        const given: Partial<Record<ConsentMember, string | undefined>> = {
          basis: options.basis,
          consent_at: options.consentAt,
          consent_source: options.consentSource,
          consent_text: options.consentText,
          tracking: options.tracking,
          tracking_at: options.at,
          tracking_source: options.source,
          tracking_text: options.text,
        };
        return recordGiven(terminal, name, (member) => given[member], json);
      }),
    );

async function recordGiven(
  terminal: Terminal,
  name: string,
  given: Parameters<typeof parseConsent>[0],
  json: true | undefined,
): Promise<void> {
  parseRecipient(name);
  await using session = await openSession(terminal);
  const record = parseConsent(given, session.logClock.now());
  if (isFault(record)) throw usageError(printable(record.reason));
  if (Object.keys(record).length === 0) throw usageError("recipients consent needs --basis or --tracking");
  const deps = { ...session, sleep, random: Math.random };
  const { isKnown, repeated, contact } = await recordConsent(deps, name, record, COMMAND_METADATA);
  const { basis = "none", consent = null, tracking = { status: "unknown" } } = contact ?? {};
  const shown =
    contact === undefined ? `${printable(name)} was erased: nothing of them is shown\n` : formatConsent(contact);
  const stranger = isKnown
    ? ""
    : "no recipient of that name was known: it holds for the recipient who turns out to have it\n";
  answer(terminal, json, { recipient: name, is_known: isKnown, repeated, basis, consent, tracking }, shown + stranger);
}
