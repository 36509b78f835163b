// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { bashScript, describeCommands, fishScript, zshScript } from "../../src/commands/completion.ts";
import { loadReachlog, runCommandLine } from "../../src/commands/shared/root-command.ts";
import { NO_TERMINAL } from "../harness/capture-command.ts";

const reachlog = await loadReachlog();

const COMMANDS = describeCommands(reachlog(NO_TERMINAL));

/** Returns the words that bash offers to complete each command line. The cursor is after the line's last word. */
function offered(lines: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const asked = lines.map((words) => {
    const list = words.map((word) => `'${word}'`).join(" ");
    return `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _reachlog; echo "$asked\${COMPREPLY[*]}"`;
  });
  // `compopt` has an effect only in an interactive shell, so this stand-in records that file names are completed.
  const script = `compopt() { asked="files "; }\n${bashScript(COMMANDS)}\n${asked.map((line) => `asked=; ${line}`).join("\n")}`;
  const { stdout, stderr, exitCode } = Bun.spawnSync(["bash", "--norc"], { stdin: Buffer.from(script) });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const answers = stdout.toString().split("\n").slice(0, -1);
  return answers.map((answer) => answer.split(" ").filter((word) => word !== ""));
}

const lineOf = (path: string, word: string): readonly string[] => ["reachlog", ...path.split(" ").slice(1), word];

describe("bash completion", () => {
  test("offers the subcommands and the options of every command", () => {
    const below = COMMANDS.filter(({ commands }) => commands.length > 0);
    expect(offered(below.map(({ path }) => lineOf(path, "")))).toEqual(
      below.map(({ commands }) => commands.map(({ name }) => name)),
    );
    expect(offered(COMMANDS.map(({ path }) => lineOf(path, "-")))).toEqual(
      COMMANDS.map(({ options }) => options.flatMap(({ names }) => names)),
    );
  });

  test.each([
    ["completes a command", ["reachlog", "aud"], ["audit"]],
    ["completes an option", ["reachlog", "audit", "export", "--fo"], ["--format"]],
    [
      "completes the values of an option",
      ["reachlog", "audit", "export", "--format", ""],
      ["jsonl", "csv", "cloudevents"],
    ],
    [
      "completes a partial value after =",
      ["reachlog", "audit", "export", "--format", "=", "c"],
      ["csv", "cloudevents"],
    ],
    [
      "offers all values directly after =",
      ["reachlog", "audit", "export", "--format", "="],
      ["jsonl", "csv", "cloudevents"],
    ],
    ["completes file names", ["reachlog", "audit", "import", "lo"], ["files"]],
    ["completes file names for an option", ["reachlog", "audit", "export", "--out", ""], ["files"]],
    [
      "completes the values of an argument",
      ["reachlog", "deliveries", "resume", ""],
      ["ads", "ads-openai", "ads-snap", "chat", "messaging", "webhook"],
    ],
    ["offers nothing for a free value", ["reachlog", "quota", "--as-of", ""], []],
    ["completes an option after another option", ["reachlog", "audit", "export", "--encrypted", "--fo"], ["--format"]],
  ])("%s", (_what, words, expected) => {
    expect(offered([words])).toEqual([expected]);
  });
});

test.each([
  ["zsh", zshScript],
  ["fish", fishScript],
])("the %s script names every command and every option", (_shell, scriptOf) => {
  const script = scriptOf(COMMANDS);
  for (const { path, options } of COMMANDS) {
    expect(script).toContain(path === "" ? "''" : path);
    for (const name of options.flatMap(({ names }) => names)) expect(script).toContain(name.replace(/^--?/, ""));
  }
});

test("completion prints the script of a supported shell, and rejects other shells", async () => {
  let out = "";
  const terminal = { ...NO_TERMINAL, out: (text: string) => void (out += text) };
  for (const [shell, scriptOf] of [
    ["bash", bashScript] as const,
    ["zsh", zshScript] as const,
    ["fish", fishScript] as const,
  ]) {
    out = "";
    expect(await runCommandLine(["completion", shell], terminal)).toBe(0);
    // The scripts are made of COMMANDS, in which the library describes --help in its own words. The running program
    // describes it in other words.
    expect(out).toBe(scriptOf(COMMANDS).replaceAll("display help for command", "show this help"));
  }
  expect(await runCommandLine(["completion", "powershell"], terminal)).toBe(2);
});
