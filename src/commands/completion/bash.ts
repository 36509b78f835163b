import type { CompletedCommand, Value } from "./commands.ts";

/** Here and in zsh; fish has another way to quote the quote. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** For bash, with or without the package bash-completion. */
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
      ${patterns(commands.map(({ path }) => path).filter((path) => path !== ""))}) at="$at $word" ;;
    esac
  done
  case "$at $before" in
${commands.flatMap(valueCases).join("")}  esac
  case "$at" in
${commands.map(wordsCase).join("")}  esac
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

/** What follows an option that takes a value, and nothing else does. */
function valueCases({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) => {
    if (value === undefined) return [];
    return [`    ${patterns(names.map((name) => `${path} ${name}`))}) ${formatReply(value)}return ;;\n`];
  });
}

function formatReply(value: Value): string {
  if (value === "file") return "compopt -o default; ";
  return value === "other" ? "" : `mapfile -t COMPREPLY < <(compgen -W ${quoteForShell(value.join(" "))} -- "$cur"); `;
}

function wordsCase({ path, commands, options, argument }: CompletedCommand): string {
  const words = commands.length > 0 ? commands.map(({ name }) => name) : listWords(argument);
  const names = options.flatMap((option) => option.names);
  return `    ${quoteForShell(path)}) words=${quoteForShell(words.join(" "))} options=${quoteForShell(names.join(" "))} ;;\n`;
}

function listWords(argument: Value | undefined): readonly string[] {
  if (argument === "file") return ["FILE"];
  return argument === undefined || argument === "other" ? [] : argument;
}
