import type * as typed from "@commander-js/extra-typings";
import { Argument, Command, type MakeCommand } from "./shared/command.ts";

export const completion: MakeCommand = (terminal) =>
  new Command("completion")
    .summary("print a script that completes commands and options in a shell")
    .description(
      `Prints a script that lets a shell complete the commands, options and values of
reachlog. It fits this version: print it again after an upgrade.`,
    )
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"] as const))
    .examples(
      "reachlog completion bash > ~/.local/share/bash-completion/completions/reachlog",
      "reachlog completion zsh > /usr/local/share/zsh/site-functions/_reachlog",
      "reachlog completion fish > ~/.config/fish/completions/reachlog.fish",
    )
    .action((shell, _options, { parent }) => {
      if (parent !== null) terminal.out(SCRIPTS[shell](describeCommands(parent)));
    });

interface CompletedCommand {
  /**
   * The words that call this command, with a space before each, such as ` audit verify`. Empty for the program itself.
   */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletedOption[];
  /** Possible words for the command's first argument. Undefined if it takes none. */
  readonly argument: readonly string[] | undefined;
}

/** Describes the program and all commands below it, in the order of their help. */
export function describeCommands(program: typed.CommandUnknownOpts, path = ""): readonly CompletedCommand[] {
  const help = program.createHelp();
  const below = help.visibleCommands(program);
  const [argument] = program.registeredArguments;
  const own = {
    path,
    commands: below.map((command) => ({ name: command.name(), summary: help.subcommandDescription(command) })),
    options: help.visibleOptions(program).map((option) => describeOption(option, help.optionDescription(option))),
    argument: argument && listWords(argument, argument.name()),
  };
  return [own, ...below.flatMap((command) => describeCommands(command, `${path} ${command.name()}`))];
}

type CompletedOption = ReturnType<typeof describeOption>;

/**
 * Describes an option for completion. `names`: such as `-h` and `--help`; `value`: possible words for its value,
 * undefined if it takes none.
 */
function describeOption(option: typed.Option, description: string) {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  const placeholder = /<(\w+)>/.exec(option.flags)?.[1];
  const value = placeholder === undefined ? undefined : listWords(option, placeholder);
  // The summary ends at the first colon, semicolon or parenthesis, because a shell shows it on one line next to the
  // name.
  return { names, summary: description.split(/[:;(]/)[0]?.trim() ?? "", value };
}

/** Stands for any file name, in a list of words that complete a value. */
const FILES: readonly string[] = ["FILE"];

/**
 * Returns the possible words for the value of an option or argument: {@link FILES} for a `<file>` or `<folder>`, none
 * for other texts.
 */
function listWords({ argChoices }: typed.Option | typed.Argument, placeholder: string): readonly string[] {
  return argChoices ?? (["file", "folder"].includes(placeholder) ? FILES : []);
}

/** Writes the completion script for bash, which works with or without the package bash-completion. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  return `# bash completion of reachlog
_reachlog() {
  local cur=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
  # --name=value comes as three words.
  if [[ $cur == '=' ]]; then cur=''
  elif [[ $before == '=' ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  set -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
${findWords(commands)}
  if [[ $found == FILE ]]; then compopt -o default; return; fi
  mapfile -t COMPREPLY < <(compgen -W "\${found[*]%%:*}" -- "$cur")
}
complete -F _reachlog reachlog
`;
}

/**
 * Writes the completion script for zsh. The operator saves it as `_reachlog` in a folder of `fpath`, or reads it with
 * `source`.
 */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef reachlog
_reachlog() {
  local cur=$PREFIX before=$words[CURRENT-1]
  if [[ $cur == --*=* ]]; then before=\${cur%%=*}; cur=''; compset -P '*='; fi
  set -- "\${(@)words[2,CURRENT-1]}"
${findWords(commands)}
  if [[ $found[1] == FILE ]]; then _files; else _describe value found; fi
}
if [[ $funcstack[1] == _reachlog ]]; then _reachlog "$@"; else compdef _reachlog reachlog; fi
`;
}

/**
 * Returns the shell code that bash and zsh share. It finds the command in the typed words `$@`, and sets `found` to the
 * completions of `$cur` that may follow the word `$before`, each with its summary after a colon.
 */
function findWords(commands: readonly CompletedCommand[]): string {
  return `  local at= word
  local -a found options
  for word; do
    case "$at $word" in
      ${commands
        .slice(1)
        .map(({ path }) => quoteForShell(path))
        .join("|")}) at="$at $word" ;;
    esac
  done
  case "$at $before" in
${commands.flatMap(formatValueCases).join("")}    *) case "$at" in
${commands.map(formatCommandCase).join("")}    esac ;;
  esac
  if [[ $cur == -* || \${#found[@]} == 0 ]]; then found=("\${options[@]}"); fi`;
}

/** Writes the cases of a shell's `case` that complete the value after an option. */
function formatValueCases({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) => {
    if (value === undefined) return [];
    return [`    ${names.map((name) => quoteForShell(`${path} ${name}`)).join("|")}) found=${formatList(value)} ;;\n`];
  });
}

function formatCommandCase({ path, commands, options, argument = [] }: CompletedCommand): string {
  const next = commands.length > 0 ? commands.map(({ name, summary }) => `${name}:${summary}`) : argument;
  const flags = options.flatMap(({ names, summary }) => names.map((name) => `${name}:${summary}`));
  return `      ${quoteForShell(path)}) found=${formatList(next)} options=${formatList(flags)} ;;\n`;
}

function formatList(words: readonly string[]): string {
  return `(${words.map(quoteForShell).join(" ")})`;
}

/** Quotes a text for bash and zsh; fish escapes a quote differently. */
const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

export function fishScript(commands: readonly CompletedCommand[]): string {
  return `# fish completion of reachlog
function __reachlog_at
    set -l at ''
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case ${commands
              .slice(1)
              .map(({ path }) => quoteForFish(path))
              .join(" ")}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c reachlog -f
${commands.flatMap(formatFishLines).join("\n")}
`;
}

const quoteForFish = (text: string): string => `'${text.replace(/[\\']/g, String.raw`\$&`)}'`;

function formatFishLines({ path, commands, options, argument }: CompletedCommand): readonly string[] {
  const here = `complete -c reachlog -n ${quoteForFish(`__reachlog_at ${quoteForFish(path)}`)}`;
  return [
    ...commands.map(({ name, summary }) => `${here} -a ${name} -d ${quoteForFish(summary)}`),
    ...options.map(({ names, summary, value }) => {
      const named = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      return [here, ...named, ...formatFishValue(value), "-d", quoteForFish(summary)].join(" ");
    }),
    ...(argument === undefined || argument.length === 0 ? [] : [[here, ...formatFishValue(argument)].join(" ")]),
  ];
}

/**
 * Writes fish's flags for an option that takes a value: `-r` requires one, `-F` offers files, and `-x` only the listed
 * words.
 */
function formatFishValue(value: readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  if (value === FILES) return ["-r", "-F"];
  return value.length === 0 ? ["-x"] : ["-x", "-a", quoteForFish(value.join(" "))];
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
