import { configurationError } from "../config/configuration-error.ts";
import type { Config } from "../config/config.ts";
import { addLinks } from "../links/add-operator-links.ts";
import type { parseLinks } from "../recipients/parse-imported-lists.ts";
import { toDomain } from "../template/short-link.ts";
import { Command, group, JSON_OPTION, type MakeCommand, readConfig } from "./shared/command.ts";
import { answer, EXIT, type Terminal, printable } from "./shared/terminal-answers-and-exit-codes.ts";
import { COMMAND_METADATA, openExistingReachlog } from "./shared/open-log-and-record-reads.ts";
import { chooseFormat, importFormatOption, readInput } from "./recipients/import.ts";

const importLinks: MakeCommand = (terminal) =>
  new Command("import")
    .summary("add the short links of a file")
    .description(
      `The file has a header with the columns code and target. It is read like a list of
recipients: with any separator of spreadsheets, in UTF-8 or UTF-16. Other
columns are ignored. Refused rows are listed with line and reason; the others are
added, and the exit code is 1. A repeat changes nothing. A code never gets another
target.`,
    )
    .argument("<file>", "a .csv, .json or .jsonl; - for stdin")
    .addOption(importFormatOption())
    .option(...JSON_OPTION)
    .examples("reachlog links import links.csv")
    .action(async (path, { format, json }) => {
      const chosen = chooseFormat(path, format);
      const { parseLinks } = await import("../recipients/parse-imported-lists.ts");
      return report(terminal, parseLinks(await readInput(path), chosen), json);
    });

export const links = group(
  "links",
  "add, import or list short links",
  [importLinks],
  "The redirect answers them while REDIRECTS is on. Templates add their links automatically.",
);

async function report(
  terminal: Terminal,
  given: ReturnType<typeof parseLinks>,
  json: true | undefined,
): Promise<number> {
  const domain = requireDomain(readConfig(terminal));
  await using context = await openExistingReachlog(terminal);
  const { added, known, refused: refusedLinks } = await addLinks(context, domain, given.rows, COMMAND_METADATA);
  const refused = [...given.refused, ...refusedLinks];
  const text = `${added} added, ${known} known before, ${refused.length} refused\n`;
  answer(terminal, json, { added, known, refused }, text);
  if (json !== true) {
    for (const { line, reason } of given.refused) terminal.err(`line ${line}: ${printable(reason)}\n`);
    for (const { line, code, reason } of refusedLinks)
      terminal.err(`${line === undefined ? "" : `line ${line}: `}${printable(code)}: ${reason}\n`);
  }
  return refused.length === 0 ? EXIT.ok : EXIT.fault;
}

/**
 * Returns the domain of the service's short links. Throws a ServiceError (configuration) if neither LINK_BASE nor
 * REDIRECTS gives one.
 */
function requireDomain({ links: { base } }: Config): string {
  if (base !== undefined) return toDomain(base);
  const wanted = "an http(s) URL such as https://go.example";
  throw configurationError([{ variable: "LINK_BASE", problem: "not set, and REDIRECTS is off", wanted }]);
}
