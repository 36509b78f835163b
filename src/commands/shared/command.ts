import { resolve } from "node:path";
import * as typed from "@commander-js/extra-typings";
import * as commander from "commander";
import { type Config, loadConfig } from "../../config/config.ts";
import { readSettingsFile, warnOfOtherEnvFiles } from "../../config/load-env-file.ts";
import { usageError } from "../../platform/service-error.ts";
import { printable, EXIT, type Terminal, type CommandEnvironment } from "./terminal-answers-and-exit-codes.ts";

/** A command whose action returns the exit code, or undefined for success. Its help ends with examples. */
class AnsweringCommand extends commander.Command {
  exitCode: number = EXIT.ok;
  override action(work: (...given: unknown[]) => unknown): this {
    return super.action(async (...given: unknown[]) => {
      this.exitCode = ((await work(...given)) as number | undefined) ?? EXIT.ok;
    });
  }
  examples(...lines: readonly string[]): this {
    const head = lines.length === 1 ? "Example" : "Examples";
    return this.addHelpText("after", `\n${head}:\n${lines.map((line) => `  ${line}`).join("\n")}`);
  }
}

declare module "@commander-js/extra-typings" {
  // oxlint-disable-next-line typescript/no-explicit-any -- as the package declares it
  interface Command<Args extends any[], Opts extends typed.OptionValues, GlobalOpts extends typed.OptionValues> {
    action(work: (...args: [...Args, Opts, this]) => number | void | Promise<number | void>): this;
    examples(...lines: readonly string[]): this;
  }
}

/**
 * The argument parser, with types that know the values of each option. A separate package provides only these types.
 */
export const { Argument, Command, InvalidArgumentError, Option } = {
  ...commander,
  Command: AnsweringCommand,
} as unknown as typeof typed;

/** Function that makes a command for one terminal, with its options, help and action. */
export type MakeCommand = (terminal: Terminal) => typed.CommandUnknownOpts;

/** Makes a command that only holds subcommands. */
export function group(name: string, summary: string, commands: readonly MakeCommand[], note = ""): MakeCommand {
  return (terminal) => {
    const command: typed.CommandUnknownOpts = new Command(name).summary(summary).description(note);
    for (const make of commands) command.addCommand(make(terminal));
    return command.helpCommand(false);
  };
}

/** True if a command does something itself, and is no group of subcommands. */
export function isRunnable({ commands, registeredArguments }: typed.CommandUnknownOpts): boolean {
  return commands.length === 0 || registeredArguments.length > 0;
}

/** The option `--json` of commands that answer with one JSON object. */
export const JSON_OPTION = ["--json", "answer with one JSON object"] as const;

/** Returns the absolute path of a file that an option names, because messages and logs name files by absolute paths. */
export function absolutePath(text: string): string {
  return resolve(text);
}

/** Width of the help in columns, which fits every terminal. */
const HELP_COLUMNS = 80;

/** Runs one command line. Returns the exit code. Throws a ServiceError (usage) for arguments that do not fit. */
export async function runCommand(make: MakeCommand, args: readonly string[], terminal: Terminal): Promise<number> {
  let code: number = EXIT.ok;
  const command = make(terminal).hook("postAction", (_program, ran) => {
    code = (ran as unknown as AnsweringCommand).exitCode;
  });
  prepare(command, terminal);
  try {
    await command.parseAsync(args, { from: "user" });
  } catch (fault) {
    if (!(fault instanceof commander.CommanderError)) throw fault;
    if (fault.exitCode === 0) return EXIT.ok;
    // The operator typed a group without a subcommand, so its help was shown.
    if (fault.code === "commander.help") return EXIT.usage;
    throw usageError(printable(fault.message.replace(/^error: /, "").replaceAll("\n", " ")));
  }
  return code;
}

/**
 * Applies the parser's settings to all subcommands, because it passes them on only to subcommands that it creates
 * itself.
 */
function prepare(command: typed.CommandUnknownOpts, terminal: Terminal): void {
  command
    .exitOverride()
    .enablePositionalOptions()
    .helpOption("-h, --help", "show this help")
    .configureHelp({ subcommandTerm: (one) => one.name() })
    .description(inParagraphs(command.description()))
    .configureOutput({
      writeOut: (text) => writeHelp(text, terminal.out),
      writeErr: (text) => writeHelp(text, terminal.err),
      // Writes nothing, because the caller catches the error and prints it.
      outputError() {},
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  for (const option of command.options) {
    const { parseArg } = option;
    if (!option.required) continue;
    option.argParser((value: string, previous) => {
      // An option cannot be the value of another option: `--out --json` would write a file named `--json`.
      if (/^-./.test(value)) throw new commander.InvalidArgumentError("Expected a value, not an option.");
      return parseArg === undefined ? value : parseArg(value, previous);
    });
  }
  for (const one of command.commands) prepare(one, terminal);
}

/**
 * Writes a command's help with bold headings. The parser's own styles are control sequences, which `write` must not
 * get.
 */
function writeHelp(text: string, write: Terminal["out"]): void {
  for (const line of text.split(/(?<=\n)/))
    write(line, /^(?:[A-Z]\w+:|[A-Z][\w, ]+:$)/m.test(line) ? "bold" : undefined);
}

/** Joins lines of a help text that are separate only in the source. Empty lines and indented lines stay. */
function inParagraphs(text: string): string {
  return text.replace(/(?<!\n)\n(?=\S)/g, " ");
}

/**
 * Reads the configuration from the environment, without the check of `OPEN_ROUTES` against the endpoints. Throws a
 * ServiceError (configuration).
 */
export function readConfig({ env }: CommandEnvironment): Config {
  return loadConfig(env, readSettingsFile);
}

/**
 * Reads the configuration and also checks `OPEN_ROUTES` against the endpoints. Only for commands that serve or check,
 * because loading the endpoints doubles the time until a command starts.
 */
export async function readServedConfig({ env }: Terminal): Promise<Config> {
  const { describePaths } = await import("../../http/endpoints.ts");
  const config = loadConfig(env, readSettingsFile, describePaths);
  return { ...config, warnings: [...config.warnings, ...warnOfOtherEnvFiles()] };
}

/** Creates a parser of whole numbers. For other texts it throws a ServiceError (usage) that says what is `wanted`. */
export function createNumberParser(wanted: string, min = 0, max = Infinity): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < min || number > max) throw usageError(wanted);
    return number;
  };
}

/** Parses the value of `--limit`. */
export const parseLimit = createNumberParser("--limit needs a number", 0, 999_999_999);

/** Parses a port to listen on. */
export const parsePort = createNumberParser("a port is a number to 65535", 0, 65_535);
