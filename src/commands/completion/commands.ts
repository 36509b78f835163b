import type { Argument, CommandUnknownOpts, Option } from "@commander-js/extra-typings";

/** What a value is chosen from: words, the files there are, or nothing that a shell knows. */
export type Value = readonly string[] | "file" | "other";

export interface CompletedOption {
  /** Such as `-h` and `--help`. */
  readonly names: readonly string[];
  readonly summary: string;
  /** Undefined: it takes none. */
  readonly value: Value | undefined;
}

/** What a shell completes behind one command. */
export interface CompletedCommand {
  /** The words that lead to it, each behind a space: ` audit verify`; the program itself has none. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletedOption[];
  /** Its first argument; undefined: it takes none. */
  readonly argument: Value | undefined;
}

/** A program and all commands below it, as their help lists them. */
export function describeCommands(program: CommandUnknownOpts, path = ""): readonly CompletedCommand[] {
  const help = program.createHelp();
  const below = help.visibleCommands(program);
  const [argument] = program.registeredArguments;
  const own = {
    path,
    commands: below.map((command) => ({ name: command.name(), summary: help.subcommandDescription(command) })),
    options: help.visibleOptions(program).map((option) => describeOption(option, help.optionDescription(option))),
    argument: argument && toValue(argument, argument.name()),
  };
  return [own, ...below.flatMap((command) => describeCommands(command, `${path} ${command.name()}`))];
}

function describeOption(option: Option, description: string): CompletedOption {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  const placeholder = /<(\w+)>/.exec(option.flags)?.[1];
  const value = placeholder === undefined ? undefined : toValue(option, placeholder);
  // The first sentence or so: a shell shows it in one line, beside the name.
  return { names, summary: description.split(/[:;(]/)[0]?.trim() ?? "", value };
}

/** Placeholders that stand for a path. */
const PATHS: readonly string[] = ["file", "folder"];

function toValue({ argChoices }: Pick<Option | Argument, "argChoices">, placeholder: string): Value {
  return argChoices ?? (PATHS.includes(placeholder) ? "file" : "other");
}
