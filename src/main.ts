import { account } from "./commands/account.ts";
import { audit } from "./commands/audit.ts";
import { backup } from "./commands/backup.ts";
import { clicks } from "./commands/clicks.ts";
import { EXIT, type Command, type Terminal } from "./commands/command.ts";
import { contacts } from "./commands/contacts.ts";
import { deliveries } from "./commands/deliveries.ts";
import { demo } from "./commands/demo.ts";
import { doctor } from "./commands/doctor.ts";
import { exitCodeOf } from "./commands/exit-code.ts";
import { forget } from "./commands/forget.ts";
import { key } from "./commands/key.ts";
import { outreach } from "./commands/outreach.ts";
import { quota } from "./commands/quota.ts";
import { recipients } from "./commands/recipients.ts";
import { replay } from "./commands/replay.ts";
import { sandbox } from "./commands/sandbox.ts";
import { serve } from "./commands/serve.ts";
import { stats } from "./commands/stats.ts";
import { sentenceOf } from "./commands/system-fault.ts";
import { token } from "./commands/token.ts";
import { printable } from "./commands/table.ts";
import { writeAll, writeText } from "./commands/write.ts";
import { handleUncaughtErrors } from "./platform/uncaught-errors.ts";
import { watchSignals } from "./platform/signals.ts";
import { VERSION } from "./platform/version.ts";

const COMMANDS: Readonly<Record<string, Command>> = {
  serve,
  demo,
  sandbox,
  doctor,
  recipients,
  outreach,
  contacts,
  stats,
  quota,
  clicks,
  replay,
  audit,
  backup,
  forget,
  deliveries,
  account,
  token,
  key,
};

/** Runs one command line. Answers the exit code. */
async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    terminal.out(help());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  if (name === "--version") {
    terminal.out(`reachlog ${VERSION}\n`);
    return EXIT.ok;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    terminal.err(`reachlog knows no command "${printable(name.slice(0, 40))}"; see reachlog --help\n`);
    return EXIT.usage;
  }
  if (rest.includes("--help") || rest.includes("-h")) {
    terminal.out(command.help);
    return EXIT.ok;
  }
  try {
    return await command.run(rest, terminal);
  } catch (fault) {
    return explain(fault, name, terminal);
  }
}

function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `reachlog ${VERSION}: event-sourced outreach and link-click tracking

usage: reachlog COMMAND [options]

${lines.join("")}
reachlog COMMAND --help tells more. Settings come from the environment and .env;
.env.example lists them all.
`;
}

/** A failure that the operator can do something about is one sentence; any other is thrown on, and shown with its stack. */
function explain(fault: unknown, name: string, terminal: Terminal): number {
  const exitCode = exitCodeOf(fault);
  if (exitCode === undefined) throw fault;
  terminal.err(`${sentenceOf(fault as Error)}\n`);
  if (exitCode === EXIT.usage) terminal.err(`see reachlog ${name} --help\n`);
  return exitCode;
}

const STDOUT = 1;
const STDERR = 2;

const interruption = watchSignals({
  on: (signal, listener) => process.on(signal, listener),
  exit: (exitCode) => process.exit(exitCode),
  now: () => performance.now(),
});

const reportError = handleUncaughtErrors((line) => writeAll(STDERR, line));

const code = await main(process.argv.slice(2), {
  env: process.env,
  out: (text) => writeText(STDOUT, text),
  err: (text) => writeText(STDERR, text),
  draw: (text) => writeAll(STDERR, text),
  interactive: process.stderr.isTTY,
  get signal() {
    return interruption.signal;
  },
}).catch((fault: unknown) => {
  reportError(fault);
  return EXIT.fault;
});
process.exit(code);
