import { expect, test } from "bun:test";
import { describeCommands } from "../../src/commands/completion.ts";
import { loadReachlog } from "../../src/commands/shared/root-command.ts";
import { openInstallation, until } from "../harness/process.ts";
import { has, run } from "./required-tools.ts";

const reachlog = await loadReachlog();

const COMMANDS = describeCommands(
  reachlog({ env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() }),
);

async function writeScript(shell: "zsh" | "fish") {
  const world = await openInstallation();
  const { out } = await world.execute("completion", shell);
  return { world, script: world.file(`completion.${shell}`, out) };
}

test.skipIf(!has("fish"))("fish completes the subcommands and options of each command", async () => {
  const { world, script } = await writeScript("fish");
  await using _ = world;
  const offered = async (line: string): Promise<readonly string[]> => {
    const out = await run("fish", "--no-config", "-c", `source ${script}; complete -C '${line}'`);
    return [...new Set(out.split("\n").flatMap((each) => each.split("\t")[0] || []))].toSorted();
  };
  for (const { path, commands, options } of COMMANDS) {
    const long = options.flatMap(({ names }) => names.filter((name) => name.startsWith("--")));
    expect([path, await offered(`reachlog${path} --`)]).toEqual([path, long.toSorted()]);
    if (commands.length === 0) continue;
    expect([path, await offered(`reachlog${path} `)]).toEqual([path, commands.map(({ name }) => name).toSorted()]);
  }
  expect(await offered("reachlog audit export --format ")).toEqual(["cloudevents", "csv", "jsonl"]);
  expect(await offered("reachlog audit import /etc/host")).toContain("/etc/hostname");
  console.log(`fish: completion of ${COMMANDS.length} commands`);
});

test.skipIf(!has("zsh"))("zsh completes commands, options, values and files", async () => {
  const { world, script } = await writeScript("zsh");
  await using _ = world;
  let seen = "";
  const shell = Bun.spawn(["zsh", "-f", "-i"], {
    cwd: world.directory,
    env: { PATH: process.env["PATH"] ?? "", TERM: "dumb", HOME: world.directory },
    terminal: { data: (_terminal, bytes) => void (seen += Buffer.from(bytes).toString()) },
  });
  // An interactive shell ignores SIGTERM, so it is killed.
  using _end = { [Symbol.dispose]: () => shell.kill("SIGKILL") };
  const say = async (typed: string, wanted: string): Promise<void> => {
    seen = "";
    shell.terminal?.write(typed);
    await until(
      async () => seen,
      (text) => text.includes(wanted),
    );
  };
  await say(`autoload -Uz compinit && compinit -u -D; source ${script}; PS1='ready''> '\n`, "ready> ");
  const typed = [
    ["reachlog rec\t", "recipients"],
    ["reachlog audit exp\t", "export"],
    ["reachlog audit export --encr\t", "--encrypted"],
    ["reachlog audit export --format cl\t", "cloudevents"],
    ["reachlog audit export --format=cl\t", "--format=cloudevents"],
    ["reachlog completion \t\t", "fish"],
    ["reachlog token \t\t", "-- list the tokens"],
    ["reachlog audit export --\t\t", "-- show this"],
    ["reachlog deliveries resume m\t", "messaging"],
    ["reachlog backup completion.z\t", "completion.zsh"],
  ] as const;
  for (const [line, wanted] of typed) await say(`\u0015${line}`, wanted);
  console.log(`zsh: completion of ${typed.length} lines`);
});
