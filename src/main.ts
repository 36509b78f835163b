import { runCommandLine } from "./commands/shared/root-command.ts";
import { EXIT } from "./commands/shared/terminal-answers-and-exit-codes.ts";
import { writeAll, writeText } from "./commands/shared/write-text-and-new-files.ts";
import { configurationError } from "./config/configuration-error.ts";
import { loadEnvFile } from "./config/load-env-file.ts";
import { handleUncaughtErrors } from "./platform/log-uncaught-errors-and-continue.ts";
import { watchSignals } from "./platform/signals.ts";

const STDOUT = 1;
const STDERR = 2;

const interruption = watchSignals({
  on: (signal, listener) => process.on(signal, listener),
  exit: (exitCode) => process.exit(exitCode),
  now: () => performance.now(),
});

const reportError = handleUncaughtErrors((line) => writeAll(STDERR, line));

const faults = loadEnvFile();

/** Asks on stderr and reads a line from stdin. The answer is empty if the question is interrupted. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question, { signal: interruption.signal });
  } catch {
    return "";
  } finally {
    lines.close();
  }
}

const code = await runCommandLine(process.argv.slice(2), {
  /** Throws only when a command reads a setting: commands that read none also run with a faulty file. */
  get env() {
    if (faults.length > 0) throw configurationError(faults);
    return process.env;
  },
  out: (text, style) => writeText(STDOUT, text, style),
  err: (text, style) => writeText(STDERR, text, style),
  draw: (text) => writeAll(STDERR, text),
  interactive: process.stderr.isTTY,
  ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  get signal() {
    return interruption.signal;
  },
}).catch((fault: unknown) => {
  reportError(fault);
  return EXIT.fault;
});
process.exit(code);
