import { quoteForShell } from "./bash.ts";
import type { CompletedCommand, CompletedOption, Value } from "./commands.ts";

/** For zsh: in a folder of its `fpath` as `_reachlog`, or read with `source`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef reachlog
_reachlog() {
  local at= word depth=0
  local -a below
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      ${commands
        .filter(({ path }) => path !== "")
        .map(({ path }) => quoteForShell(path))
        .join("|")}) at="$at $word"; (( depth += 1 )) ;;
    esac
  done
  # What comes behind the words of the command counts as its arguments.
  words=("\${(@)words[depth+1,-1]}")
  (( CURRENT -= depth ))
  case "$at" in
${commands.map(formatCase).join("")}  esac
}
if [[ $funcstack[1] == _reachlog ]]; then _reachlog "$@"; else compdef _reachlog reachlog; fi
`;
}

/** Within brackets and lists these end something. */
const escaped = (text: string): string => text.replace(/[[\]:\\]/g, String.raw`\$&`);

function formatCase({ path, commands, options, argument }: CompletedCommand): string {
  const specs = options.map(formatOption);
  if (argument !== undefined) specs.push(quoteForShell(`*:argument:${formatAction(argument)}`));
  if (commands.length === 0) return `    ${quoteForShell(path)}) _arguments -s ${specs.join(" ")} ;;\n`;
  const list = commands.map(({ name, summary }) => quoteForShell(`${escaped(name)}:${escaped(summary)}`));
  return `    ${quoteForShell(path)})
      below=(${list.join(" ")})
      _arguments -s ${specs.join(" ")} '1:command:{_describe command below}' ;;
`;
}

function formatOption({ names, summary, value }: CompletedOption): string {
  const what = `[${escaped(summary)}]${value === undefined ? "" : `:value:${formatAction(value)}`}`;
  // Both names of an option are one: the other is not offered behind the first.
  const [first = "", ...others] = names;
  if (others.length === 0) return quoteForShell(first + what);
  return `${quoteForShell(`(${names.join(" ")})`)}{${names.join(",")}}${quoteForShell(what)}`;
}

function formatAction(value: Value): string {
  if (value === "file") return "_files";
  return value === "other" ? " " : `(${value.join(" ")})`;
}
