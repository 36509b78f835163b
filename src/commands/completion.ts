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

/** How a shell completes a value: from words, from files, or not at all. */
type Value = readonly string[] | "file" | "other";

interface CompletedCommand {
  /** The words of its command line, each after a space: ` audit verify`. Empty for the program itself. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletedOption[];
  /** Its first argument. Undefined if it takes none. */
  readonly argument: Value | undefined;
}

/** Returns the program first, then all commands below it, as their help lists them. */
export function describeCommands(program: typed.CommandUnknownOpts, path = ""): readonly CompletedCommand[] {
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

type CompletedOption = ReturnType<typeof describeOption>;

/** `names` are such as `-h` and `--help`. `value` is undefined if the option takes none. */
function describeOption(option: typed.Option, description: string) {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  const placeholder = /<(\w+)>/.exec(option.flags)?.[1];
  const value = placeholder === undefined ? undefined : toValue(option, placeholder);
  // Only the text up to the first colon, semicolon or parenthesis: a shell shows it on one line, next to the name.
  return { names, summary: description.split(/[:;(]/)[0]?.trim() ?? "", value };
}

/** Placeholders that stand for a path. */
const PATHS: readonly string[] = ["file", "folder"];

function toValue({ argChoices }: Pick<typed.Option | typed.Argument, "argChoices">, placeholder: string): Value {
  return argChoices ?? (PATHS.includes(placeholder) ? "file" : "other");
}

/** Quotes a text for bash and zsh; fish escapes a quote differently. */
const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The script for bash, with or without the package bash-completion. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  return `# bash completion of reachlog
_reachlog() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at= before options='' word words=''
  # --name=value comes as three words.
  if [[ $cur == '=' ]]; then cur=''; before=\${COMP_WORDS[COMP_CWORD - 1]}
  elif [[ \${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}
  else before=\${COMP_WORDS[COMP_CWORD - 1]}
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${patterns(commands.slice(1).map(({ path }) => path))}) at="$at $word" ;;
    esac
  done
  case "$at $before" in
${commands.flatMap(valueCases).join("")}    *) case "$at" in
${commands.map(wordsCase).join("")}    esac ;;
  esac
  if [[ $cur == -* || -z $words ]]; then words=$options
  elif [[ $words == FILE ]]; then compopt -o default; return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _reachlog reachlog
`;
}

function patterns(texts: readonly string[]): string {
  return texts.map(quoteForShell).join("|");
}

/** Completes what follows an option that takes a value. */
function valueCases({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) => {
    if (value === undefined) return [];
    return [`    ${patterns(names.map((name) => `${path} ${name}`))}) words=${quoteForShell(formatWords(value))} ;;\n`];
  });
}

function wordsCase({ path, commands, options, argument }: CompletedCommand): string {
  const words = formatWords(commands.length > 0 ? commands.map(({ name }) => name) : argument);
  const names = options.flatMap((option) => option.names).join(" ");
  return `      ${quoteForShell(path)}) words=${quoteForShell(words)} options=${quoteForShell(names)} ;;\n`;
}

/** `FILE` stands for the names of files. */
function formatWords(value: Value = "other"): string {
  if (value === "file") return "FILE";
  return value === "other" ? "" : value.join(" ");
}

/** The script for zsh: a file `_reachlog` in a folder of `fpath`, or read with `source`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef reachlog
_reachlog() {
  local at= word depth=0
  local -a below
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      ${patterns(commands.slice(1).map(({ path }) => path))}) at="$at $word"; (( depth += 1 )) ;;
    esac
  done
  # What comes behind the words of the command counts as its arguments.
  words=("\${(@)words[depth+1,-1]}")
  (( CURRENT -= depth ))
  case "$at" in
${commands.map(formatZshCase).join("")}  esac
}
if [[ $funcstack[1] == _reachlog ]]; then _reachlog "$@"; else compdef _reachlog reachlog; fi
`;
}

/** Escapes characters that end a bracket or a list entry. */
const escapeForZsh = (text: string): string => text.replace(/[[\]:\\]/g, String.raw`\$&`);

function formatZshCase({ path, commands, options, argument }: CompletedCommand): string {
  const specs = options.map(formatZshOption);
  if (argument !== undefined) specs.push(quoteForShell(`*:argument:${formatZshAction(argument)}`));
  if (commands.length === 0) return `    ${quoteForShell(path)}) _arguments -s ${specs.join(" ")} ;;\n`;
  const list = commands.map(({ name, summary }) => quoteForShell(`${escapeForZsh(name)}:${escapeForZsh(summary)}`));
  return `    ${quoteForShell(path)})
      below=(${list.join(" ")})
      _arguments -s ${specs.join(" ")} '1:command:{_describe command below}' ;;
`;
}

function formatZshOption({ names, summary, value }: CompletedOption): string {
  const what = `[${escapeForZsh(summary)}]${value === undefined ? "" : `:value:${formatZshAction(value)}`}`;
  // After one name of an option, zsh does not offer the other.
  const [first = "", ...others] = names;
  if (others.length === 0) return quoteForShell(first + what);
  return `${quoteForShell(`(${names.join(" ")})`)}{${names.join(",")}}${quoteForShell(what)}`;
}

function formatZshAction(value: Value): string {
  if (value === "file") return "_files";
  return value === "other" ? " " : `(${value.join(" ")})`;
}

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
    ...(argument === undefined || argument === "other" ? [] : [[here, ...formatFishValue(argument)].join(" ")]),
  ];
}

/** `-r`: a value is required; `-F`: files are offered; `-x`: only these words. */
function formatFishValue(value: Value | undefined): readonly string[] {
  if (value === undefined) return [];
  if (value === "file") return ["-r", "-F"];
  return value === "other" ? ["-x"] : ["-x", "-a", quoteForFish(value.join(" "))];
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
