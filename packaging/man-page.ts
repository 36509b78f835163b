import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Argument, CommandUnknownOpts } from "@commander-js/extra-typings";
import { isRunnable } from "../src/commands/shared/command.ts";
import { loadReachlog } from "../src/commands/shared/root-command.ts";
import { secretFiles } from "../src/config/schema.ts";
import { VERSION } from "../src/platform/version.ts";
import { ROOT } from "./bundle.ts";

const reachlog = await loadReachlog();

/**
 * The manual page reachlog(1), in roff, built from the declared commands, `.env.example`, and the table of exit codes.
 */
export function manPage(): string {
  const program = reachlog({ env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() });
  return `.TH REACHLOG 1 "" "reachlog ${VERSION}"
.SH NAME
reachlog \\- ${escaped(program.description())}
.SH SYNOPSIS
.B reachlog
.I command
.RI [ options ]
.SH COMMANDS
${leavesOf(program, []).map(sectionOf).join("")}.SH EXIT STATUS
${tableOf("docs/command-line.md", /^\| (\d+) +\| (.*?) *\|$/gm)}.SH ENVIRONMENT
Each of these may stand in the file .env of the folder that reachlog is started in, too.
Secrets can come from files: ${escaped([...secretFiles.keys()].join(", "))} name such a file.
${settings()}`;
}

type Leaf = readonly [path: readonly string[], command: CommandUnknownOpts];

/** The executable commands, each with its path of subcommands. */
function leavesOf(command: CommandUnknownOpts, path: readonly string[]): readonly Leaf[] {
  const below = command.commands.flatMap((one) => leavesOf(one, [...path, one.name()]));
  return isRunnable(command) ? [[path, command], ...below] : below;
}

function sectionOf([path, command]: Leaf): string {
  const help = command.createHelp();
  const usage = [path.join(" "), ...command.registeredArguments.map(termOf)];
  const values = command.registeredArguments.map(
    (argument) => [termOf(argument), help.argumentDescription(argument)] as const,
  );
  const options = command.options.map((option) => [option.flags, help.optionDescription(option)] as const);
  const text = command.description() === "" ? command.summary() : command.description();
  return [
    `.SS ${escaped(usage.join(" "))}\n`,
    `${text.split("\n\n").map(escaped).join("\n.PP\n")}\n`,
    ...[...values, ...options].map(([term, what]) => tagged(term, what)),
    unfilled(behindHelp(command)),
  ].join("");
}

/** Formats a command's argument as usage lines show it. */
function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The text after a command's help: examples, exit codes. */
function behindHelp(command: CommandUnknownOpts): string {
  let text = "";
  command.configureOutput({ writeOut: (more) => (text += more) }).outputHelp();
  return text.slice(command.helpInformation().length).trim();
}

function unfilled(text: string): string {
  return text === "" ? "" : `.PP\n.nf\n${escaped(text)}\n.fi\n`;
}

function tagged(term: string, what: string): string {
  return `.TP\n.B ${escaped(term)}\n${escaped(what)}\n`;
}

/** Formats the rows of a table in a Markdown document; the pattern `row` captures two cells of each. */
function tableOf(document: string, row: RegExp): string {
  const rows = [...readFileSync(join(ROOT, document), "utf8").matchAll(row)];
  return rows.map(([, code = "", means = ""]) => tagged(code, means.replaceAll("`", ""))).join("");
}

/** The settings, each with the comment above it. */
function settings(): string {
  const text = readFileSync(join(ROOT, ".env.example"), "utf8");
  const found = text.matchAll(/((?:^# (?![A-Z_]+=|---).*\n)+)^# ([A-Z_]+=.*)$/gm);
  return [...found]
    .map(([, comment = "", setting = ""]) => tagged(setting, comment.replace(/^# /gm, "").trim()))
    .join("");
}

/** Escapes hyphens, which roff would set as dashes, and leading dots and quotes, which it would read as requests. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", String.raw`\e`)
    .replaceAll("-", String.raw`\-`)
    .replace(/^(?=[.'])/gm, String.raw`\&`);
}
