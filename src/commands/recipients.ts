import { Command, group, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { evidenceCommand } from "./recipients/evidence.ts";
import { datesOption, importFile, importFormatOption } from "./recipients/import.ts";

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

export const recipients = group(
  "recipients",
  "import, list, suppress, release, retry or forget; consent",
  [importRecipients, evidenceCommand],
  "All of them work beside a running service.",
);
