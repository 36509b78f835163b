import { loadConfig } from "../../src/config/config.ts";
import { openLog, type OpenedLog, type OpenLogOptions } from "../../src/privacy/open-log.ts";
import { runCommand, type MakeCommand } from "../../src/commands/shared/command.ts";
import { runCommandLine } from "../../src/commands/shared/root-command.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";

/** Test terminal that discards a command's output. */
export const NO_TERMINAL: Terminal = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };

/** Output and exit code of a command that a test ran. */
export interface Captured {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process. Throws the errors that `main.ts` would explain to the operator. */
export async function capture(
  command: MakeCommand,
  args: readonly string[],
  given: Pick<Terminal, "env"> & Partial<Terminal>,
): Promise<Captured> {
  return captured((terminal) => runCommand(command, args, terminal), given);
}

/** Runs a whole command line in this process, without the start of a process for each. */
export async function captureCommandLine(words: readonly string[], env: Terminal["env"]): Promise<Captured> {
  return captured((terminal) => runCommandLine(words, terminal), { env });
}

async function captured(
  run: (terminal: Terminal) => Promise<number>,
  { signal = new AbortController().signal, interactive = false, ...given }: Pick<Terminal, "env"> & Partial<Terminal>,
): Promise<Captured> {
  let [out, err] = ["", ""];
  const code = await run({
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    interactive,
    signal,
    ...given,
  });
  return { code, out, err };
}

/** Opens the log of these settings as commands do, and runs `work` on it. */
export async function withLog<Result>(
  env: Terminal["env"],
  work: (log: OpenedLog) => Promise<Result>,
  options: OpenLogOptions = {},
): Promise<Result> {
  await using log = await openLog(
    loadConfig(env, () => ""),
    options,
  );
  return await work(log);
}
