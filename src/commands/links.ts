import { readFileSync } from "node:fs";
import { CsvError, parse } from "csv-parse/sync";
import { formatTemplate } from "../../projections/results.ts";
import { configurationError } from "../config/error.ts";
import type { Config } from "../config/config.ts";
import { addLinks, CODE_CHARS_MAX, type NewLink } from "../links/add-links.ts";
import { ServiceError } from "../platform/service-error.ts";
import { toDomain } from "../template/short-link.ts";
import { Command, group, JSON_OPTION, type MakeCommand, readConfig } from "./shared/command.ts";
import { answer, answerEach, EXIT, type Terminal, printable, table } from "./shared/terminal.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { withPath } from "./shared/system-fault.ts";

const add: MakeCommand = (terminal) =>
  new Command("add")
    .summary("add a short link for the redirect")
    .argument("<code>", `1 to ${CODE_CHARS_MAX} letters, digits, _ or -`)
    .argument("<target>", "an http or https URL")
    .option(...JSON_OPTION)
    .examples("reachlog links add spring https://shop.example/offer")
    .action((code, target, { json }) => report(terminal, [{ code, target }], json));

const importLinks: MakeCommand = (terminal) =>
  new Command("import")
    .summary("add the short links of a CSV file")
    .description(
      `The file has the columns code and target, and a header that names them. Refused
rows are listed with their reason; the others are added, and the exit code is 1.
A repeat changes nothing. A code never gets another target.`,
    )
    .argument("<file>", "a .csv")
    .option(...JSON_OPTION)
    .examples("reachlog links import links.csv")
    .action((path, { json }) => report(terminal, readLinks(path), json));

const list: MakeCommand = (terminal) =>
  new Command("list")
    .summary("show the links that operators and messages added")
    .option("--json", "answer with one JSON object for each link")
    .action(async ({ json }) => {
      await using session = await openSession(terminal);
      const { shared } = session.projector.state("links");
      const results = session.projector.state("results");
      const rows = [...shared].map(([code, { domain, target, variant = null, added_at, template = null }]) => {
        const template_name = template === null ? null : (results.templates.get(template) ?? null);
        return { link: `${domain}/${code}`, target, template, template_name, variant, added_at };
      });
      const cells = rows.map(({ link, template, variant, target }) => [
        link,
        template === null ? "-" : printable(formatTemplate(results, template)),
        variant ?? "-",
        printable(target),
      ]);
      const head = ["link", "template", "variant", "target"];
      const text = rows.length === 0 ? "no link was added yet\n" : table(head, cells);
      answerEach(terminal, json, rows, text);
    });

export const links = group(
  "links",
  "add, import or list short links",
  [add, list, importLinks],
  "The redirect answers them while REDIRECTS is on. Templates add theirs by themselves.",
);

async function report(terminal: Terminal, given: readonly NewLink[], json: true | undefined): Promise<number> {
  const domain = requireDomain(readConfig(terminal));
  await using session = await openSession(terminal);
  const { added, known, refused } = await addLinks(session, domain, given, COMMAND_METADATA);
  const text = `${added} added, ${known} known before, ${refused.length} refused\n`;
  answer(terminal, json, { added, known, refused }, text);
  if (json !== true) for (const { code, reason } of refused) terminal.err(`${printable(code)}: ${reason}\n`);
  return refused.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Throws a ServiceError (configuration) where no link could name the service. */
function requireDomain({ links: { base } }: Config): string {
  if (base !== undefined) return toDomain(base);
  const wanted = "an http(s) URL such as https://go.example";
  throw configurationError([{ variable: "LINK_BASE", problem: "not set, and REDIRECTS is off", wanted }]);
}

/** Throws a ServiceError (invalid) for a file without these columns. */
function readLinks(path: string): readonly NewLink[] {
  const text = withPath(path, () => readFileSync(path, "utf8"));
  try {
    const rows: Partial<NewLink>[] = parse(text, { bom: true, columns: true, skip_empty_lines: true, trim: true });
    return rows.map(({ code, target }) => {
      if (code === undefined || target === undefined)
        throw new ServiceError("invalid", "the file needs the columns code and target");
      return { code, target };
    });
  } catch (fault) {
    throw fault instanceof CsvError ? new ServiceError("invalid", `the file is not CSV: ${fault.message}`) : fault;
  }
}
