import { loadConfig } from "../../src/config/config.ts";
import { openLog, type OpenedLog, type OpenLogOptions } from "../../src/privacy/open-log.ts";
import { runCommand, type MakeCommand } from "../../src/commands/shared/command.ts";
import type { Terminal } from "../../src/commands/shared/terminal.ts";

/** Test terminal that discards a command's output. */
export const NO_TERMINAL: Terminal = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };

/** Output and exit code of a command that a test ran. */
export interface Captured {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process. Rethrows the errors that `main.ts` would explain. */
export async function capture(
  command: MakeCommand,
  args: readonly string[],
  { signal = new AbortController().signal, interactive = false, ...given }: Pick<Terminal, "env"> & Partial<Terminal>,
): Promise<Captured> {
  let [out, err] = ["", ""];
  const code = await runCommand(command, args, {
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
