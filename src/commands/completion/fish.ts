import type { CompletedCommand, Value } from "./commands.ts";

/** For fish. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => path).filter((path) => path !== "");
  return `# fish completion of reachlog
function __reachlog_at
    set -l at ''
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case ${paths.map(quoted).join(" ")}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c reachlog -f
${commands.flatMap(formatCommand).join("\n")}
`;
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, String.raw`\$&`)}'`;

function formatCommand({ path, commands, options, argument }: CompletedCommand): readonly string[] {
  const here = `complete -c reachlog -n ${quoted(`__reachlog_at ${quoted(path)}`)}`;
  return [
    ...commands.map(({ name, summary }) => `${here} -a ${name} -d ${quoted(summary)}`),
    ...options.map(({ names, summary, value }) => {
      const named = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      return [here, ...named, ...formatValue(value), "-d", quoted(summary)].join(" ");
    }),
    ...(argument === undefined || argument === "other" ? [] : [[here, ...formatValue(argument)].join(" ")]),
  ];
}

/** `-r`: a value follows; `-F`: a file may; `-x`: nothing but these. */
function formatValue(value: Value | undefined): readonly string[] {
  if (value === undefined) return [];
  if (value === "file") return ["-r", "-F"];
  return value === "other" ? ["-x"] : ["-x", "-a", quoted(value.join(" "))];
}
