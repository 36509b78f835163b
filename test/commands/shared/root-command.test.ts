// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { isRunnable } from "../../../src/commands/shared/command.ts";
import { loadReachlog, runCommandLine } from "../../../src/commands/shared/root-command.ts";
import { NO_TERMINAL } from "../../harness/capture-command.ts";

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await runCommandLine(args, {
    env: { DATABASE_URL: "sqlite:/dev/null/none.sqlite" },
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    interactive: false,
    signal: AbortSignal.abort(130),
  });
  return { code, out, err };
}

const reachlog = await loadReachlog();

const program = reachlog(NO_TERMINAL);

/** Returns all subcommands of a command, at any depth, each with its path. */
function below(command: CommandUnknownOpts, path: readonly string[] = []): [readonly string[], CommandUnknownOpts][] {
  return command.commands.flatMap((one) => {
    const words = [...path, one.name()];
    return [[words, one] as [readonly string[], CommandUnknownOpts], ...below(one, words)];
  });
}

const COMMANDS = below(program);

describe("help", () => {
  test.each([[], ...COMMANDS.map(([path]) => path)].map((path) => [path.join(" "), path] as const))(
    "for reachlog %s begins with its usage, and fits a terminal of 80 columns",
    async (_name, path) => {
      const { code, out, err } = await run(...path, "--help");
      expect([code, err]).toEqual([0, ""]);
      expect(out).toStartWith(`Usage: ${["reachlog", ...path].join(" ")}`);
      expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
    },
  );

  test.each([[], ...COMMANDS.map(([path]) => path)].map((path) => [path.join(" "), path] as const))(
    "for reachlog %s fills its lines",
    async (_name, path) => {
      const { out } = await run(...path, "--help");
      const lines = (out.split(/^(?:Arguments|Options):$/m)[0] ?? "").split("\n");
      const broken = lines.filter((line, at) => {
        const word = /^\S+/.exec(lines[at + 1] ?? "")?.[0];
        return /^\S/.test(line) && word !== undefined && `${line} ${word}`.length <= 80;
      });
      expect(broken).toEqual([]);
    },
  );

  test("describes each command in one line, and each option and argument", () => {
    for (const [path, command] of COMMANDS) {
      expect([path, command.summary()]).toEqual([path, expect.stringMatching(/^[^\n]{10,63}$/)]);
      for (const { flags, description } of command.options) expect([flags, description]).not.toEqual([flags, ""]);
      for (const one of command.registeredArguments)
        expect([one.name(), one.description]).not.toEqual([one.name(), ""]);
    }
  });

  test("has examples with existing commands and options only", () => {
    for (const [path, command] of COMMANDS) {
      let text = "";
      command.configureOutput({ writeOut: (more) => (text += more) }).outputHelp();
      const examples = [...text.matchAll(/^ +(?:.*\| )?(reachlog .+)$/gm)].map((found) => found[1] ?? "");
      if (text.includes("Example")) expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) expect([path, faultOf(example)]).toEqual([path, undefined]);
    }
  });
});

/** Command without the option --json -> the reason why. */
const WITHOUT_JSON: Readonly<Record<string, string>> = {
  serve: "runs until it is stopped; its log is JSON lines",
  demo: "runs until it is stopped",
  sandbox: "runs until it is stopped",
  settings: "prints a file of settings",
  "suppressions export": "writes a list, in the form that --format says",
  "audit head": "writes a signed note, whose form is a standard",
  "audit prove": "writes a proof, whose form is a standard",
  "audit export": "writes events, in the form that --format says",
  "witness serve": "runs until it is stopped",
  mcp: "speaks a protocol",
  completion: "prints a script",
};

test("every command has --json, except those listed with a reason", () => {
  const without = COMMANDS.filter(([, { commands, options }]) => {
    return commands.length === 0 && options.every(({ long }) => long !== "--json");
  });
  expect(without.map(([path]) => path.join(" "))).toEqual(Object.keys(WITHOUT_JSON));
});

test.each([
  ["bakup", "unknown command 'bakup' (Did you mean backup?)", "reachlog"],
  ["audit shw ada", "unknown command 'shw' (Did you mean show?)", "reachlog audit"],
  ["deliveries list --chanel ads", "unknown option '--chanel' (Did you mean --channel?)", "reachlog deliveries list"],
  ["backup", "missing required argument 'folder'", "reachlog backup"],
  ["quota today", "too many arguments for 'quota'. Expected 0 arguments but got 1: today.", "reachlog quota"],
])("%j is refused with a suggestion and a pointer to the help", async (line, sentence, path) => {
  expect(await run(...line.split(" "))).toEqual({ code: 2, out: "", err: `${sentence}\nsee ${path} --help\n` });
});

test("an option is not accepted as the value of another option", async () => {
  const { code, err } = await run("audit", "export", "--out", "--encrypted");
  expect([code, err]).toEqual([2, expect.stringContaining("Expected a value, not an option.")]);
});

test("control characters in the input do not reach the terminal", async () => {
  const { err } = await run("\u001b[2Jaudit");
  expect(err).toStartWith("unknown command '\ufffd[2Jaudit'");
});

test.each(["-V", "--version"])("%s shows the version", async (option) => {
  expect(await run(option)).toEqual({ code: 0, out: expect.stringMatching(/^reachlog \d+\.\d+\.\d+\n$/), err: "" });
});

test("a command without its subcommand shows its help, and is a usage error", async () => {
  expect(await run("audit")).toEqual({ code: 2, out: "", err: expect.stringContaining("Usage: reachlog audit") });
});

describe("the documents", () => {
  const root = join(import.meta.dirname, "../../..");
  const documents = ["README.md", ...readdirSync(join(root, "docs")).map((name) => join("docs", name))];
  const texts = documents.filter((name) => name.endsWith(".md")).map((name) => readFileSync(join(root, name), "utf8"));

  test("name existing commands and options only", () => {
    const lines = texts.flatMap((text) =>
      [...text.matchAll(/\bbun (reachlog [^`\n#|]+)/g)].map((found) => found[1] ?? ""),
    );
    expect(lines.length).toBeGreaterThan(10);
    for (const line of lines) expect([line, faultOf(line)]).toEqual([line, undefined]);
  });
});

/** Checks a command line in a document. Returns what is wrong with it; undefined if its commands and options exist. */
function faultOf(line: string): string | undefined {
  const [, ...words] = line.trim().split(/\s+/);
  let command = program;
  for (const word of words) {
    if (word.startsWith("--")) {
      const name = word.replace(/=.*/, "");
      const known = ["--help", ...command.options.map(({ long }) => long)];
      if (!known.includes(name)) return `no option ${name}`;
    }
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined && !isRunnable(command) && !word.startsWith("-")) return `no command ${word}`;
    command = next ?? command;
  }
  return undefined;
}
