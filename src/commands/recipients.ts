import { allowRetry, type RetryRefusal } from "../recipients/allow-retry.ts";
import { parseRecipient } from "../recipients/resolve-recipient.ts";
import { release, type ReleaseRefusal } from "../recipients/release.ts";
import { Command, group, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, printable } from "./shared/terminal.ts";
import { formatConsent } from "./contacts.ts";
import { COMMAND_METADATA, openSession, recordRead } from "./shared/log-session.ts";
import { evidenceCommand } from "./recipients/evidence.ts";
import { datesOption, importFile, importFormatOption } from "./recipients/import.ts";
import { isFault, parseConsent, type ConsentMember } from "../recipients/parse-consent.ts";
import { recordConsent } from "../recipients/record-consent.ts";
import { discloseRecipient } from "../privacy/read-audit.ts";
import { toRecipient } from "../../projections/contacts.ts";
import { usageError } from "../platform/service-error.ts";

const importRecipients: MakeCommand = (terminal) =>
  new Command("import")
    .summary("add or update recipients")
    .description(
      `Columns of a file: username (or handle) and/or id, name, basis (dm_first, opt_in,
none), consent_at, consent_source, consent_text, tracking (granted, denied,
unknown), tracking_at, tracking_source, tracking_text, and any others as template
fields. Handles may be @handle or the address of a profile. A known recipient is
updated: what the file has no column for stays, a blank cell takes back the name,
time zone or field, and only the basis none revokes consent. Refused rows are listed with line and reason; the good ones go in, and
the exit code is 1. basis says why you may write to them, and consent_at,
consent_source and consent_text when, where and to which wording they agreed:
without a basis they get no message while REQUIRE_CONSENT is true, and without
date and source none while it is evidence. tracking says whether clicks by links
of their own may be recorded; a file without that column changes nothing of it.
Cells that were not read as they stand are named, such as null for an empty one.
An interrupted import says how far it came; run it again to import the rest.`,
    )
    .argument("<file>", "a .csv, .json or .jsonl; - for stdin")
    .addOption(importFormatOption())
    .addOption(datesOption())
    .option(...JSON_OPTION)
    .examples(
      "reachlog recipients import people.csv",
      "jq .people crm.json | reachlog recipients import - --format json",
    )
    .action((path, options) => importFile(terminal, path, options));

const retryRecipient: MakeCommand = (terminal) =>
  new Command("retry")
    .summary("allow one more try after a failure")
    .argument("<handle>", "id, handle or @handle")
    .option(...JSON_OPTION)
    .examples("reachlog recipients retry @sara_sells")
    .action(async (recipient, { json }) => {
      parseRecipient(recipient);
      await using session = await openSession(terminal);
      const refusal = await allowRetry(session, recipient, COMMAND_METADATA);
      const text = `${printable(recipient)} ${refusal === undefined ? "is tried again in the next run" : REFUSALS[refusal]}\n`;
      if (json !== true && refusal !== undefined) terminal.err(text);
      else answer(terminal, json, { recipient, refusal: refusal ?? null }, text);
      return refusal === undefined ? EXIT.ok : EXIT.fault;
    });

const releaseRecipient: MakeCommand = (terminal) =>
  new Command("release")
    .summary("let runs contact a recipient whose reply was held")
    .description(
      `A reply with a stop word that may mean another thing holds its sender: no run
contacts them until you decide. Read the reply at X, then release them, or suppress
them for good. recipients list --held shows who waits.`,
    )
    .argument("<handle>", "id, handle or @handle")
    .option(...JSON_OPTION)
    .examples("reachlog recipients release @sara_sells")
    .action(async (recipient, { json }) => {
      parseRecipient(recipient);
      await using session = await openSession(terminal);
      const refusal = await release(session, recipient, COMMAND_METADATA);
      const said = refusal === undefined ? "may be contacted by the next run" : RELEASE_REFUSALS[refusal];
      const text = `${printable(recipient)} ${said}\n`;
      if (json !== true && refusal !== undefined) terminal.err(text);
      else answer(terminal, json, { recipient, refusal: refusal ?? null }, text);
      return refusal === undefined ? EXIT.ok : EXIT.fault;
    });

const RELEASE_REFUSALS: Readonly<Record<ReleaseRefusal, string>> = {
  unknown: "is not known",
  suppressed: "is suppressed, and gets no message",
};

const consentCommand: MakeCommand = (terminal) =>
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
    .examples(
      "reachlog recipients consent @sara_sells --basis opt_in --consent-at 2026-03-02",
      "reachlog recipients consent @sara_sells --tracking denied --source mail",
    )
    .action(async (name, { json, ...options }) => {
      parseRecipient(name);
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
      await using session = await openSession(terminal);
      const record = parseConsent((member) => given[member], session.logClock.now());
      if (isFault(record)) throw usageError(printable(record.reason));
      if (Object.keys(record).length === 0) throw usageError("recipients consent needs --basis or --tracking");
      const { isKnown, repeated, contact } = await recordConsent(session, name, record, COMMAND_METADATA);
      const { basis = "none", consent = null, tracking = { status: "unknown" } } = contact ?? {};
      const about = discloseRecipient(contact && toRecipient(contact));
      if (contact !== undefined) {
        await recordRead(terminal, session.eventLog.store, { resource: "recipient", ...about, records: 1 });
      }
      const erased = `${printable(name)} was erased, so nothing is shown\n`;
      const shown = contact === undefined ? erased : formatConsent(contact);
      const stranger = isKnown ? "" : "no recipient with that name is known yet: the record applies once one is\n";
      const recorded = { recipient: name, is_known: isKnown, repeated, basis, consent, tracking };
      answer(terminal, json, recorded, shown + stranger);
    });

export const recipients = group(
  "recipients",
  "import, list, suppress, release, retry or forget; consent",
  [importRecipients, consentCommand, evidenceCommand, releaseRecipient, retryRecipient],
  "All of them work beside a running service.",
);

const REFUSALS: Readonly<Record<RetryRefusal, string>> = {
  unknown: "has no failed message to retry",
  suppressed: "is suppressed, and gets no message",
  not_failed: "has no failed message to retry",
};
