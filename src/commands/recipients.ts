import { Command, group, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { evidenceCommand } from "./recipients/evidence.ts";
import { datesOption, importFile, importFormatOption } from "./recipients/import.ts";

const importRecipients: MakeCommand = (terminal) =>
  new Command("import")
    .summary("add or update recipients")
    .description(
      `Columns of a file: username (or handle) and/or id, name, basis (dm_first, opt_in,
none), consent_at, consent_source, consent_text, consent_for, tracking (granted,
denied, unknown), tracking_at, tracking_source, tracking_text, and any others as
template fields. Handles may be @handle or the address of a profile. A known recipient is
updated: values without a column in the file stay, a blank cell removes the name,
time zone or field, and only the basis none revokes consent. Refused rows are
listed with line and reason; the others are imported, and the exit code is 1.
basis says why you may write to them, and consent_at, consent_source and
consent_text when, where and to which wording they agreed: without a basis they
get no message while REQUIRE_CONSENT is true, and without date and source none
while it is evidence. consent_for names the campaign or topic that they agreed to,
and the consent holds for no other. tracking says whether clicks on their own links may be
recorded; a file without that column does not change it. Cells that were read
differently than written are listed, such as null, which is read as blank. An
interrupted import names the last imported line; run it again to import the rest.`,
    )
    .argument("<file>", "a .csv, .json or .jsonl; - for stdin")
    .addOption(importFormatOption())
    .addOption(datesOption())
    .option("--map <header=column>", "what a column becomes (empty: left out); repeat it", collectChoices)
    .option("--basis <word>", "the basis of all rows that give none")
    .option("--consent-source <text>", "the source of consent of all rows that give none")
    .option("--preview", "say what the import would do, with a guess for unknown columns, and write nothing")
    .option(...JSON_OPTION)
    .examples(
      "reachlog recipients import people.csv",
      'reachlog recipients import people.csv --map "Opt-in=consent_at" --map E-Mail=',
      "reachlog recipients import people.csv --basis opt_in --consent-source form",
      "jq .people crm.json | reachlog recipients import - --format json",
    )
    .action((path, options) => importFile(terminal, path, options));

function collectChoices(choice: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, choice];
}

export const recipients = group(
  "recipients",
  "import, list, suppress, release, retry or forget; consent",
  [importRecipients, evidenceCommand],
  "All of them work beside a running service.",
);
