import {
  BackupFailed,
  SigningKeyRefused,
  StoreBusy,
  StoreFull,
  StoreOverloaded,
  StoreOwned,
  StoreUnusable,
  TargetTaken,
} from "eventstore-lite";
import { KeyError } from "./vault/key.ts";
import { VaultDamaged, VaultKeyMismatch } from "./vault/vault-error.ts";
import { LogContradicted } from "./log/signed-heads.ts";
import { InvalidEvent } from "../events/catalog.ts";
import { MovedCiphertext } from "../events/encrypted-data.ts";
import { account } from "./commands/account.ts";
import { audit } from "./commands/audit.ts";
import { FileFault } from "./commands/audit/file-fault.ts";
import { backup } from "./commands/backup.ts";
import { clicks } from "./commands/clicks.ts";
import { EXIT, UsageError, type Command, type Terminal } from "./commands/command.ts";
import { contacts } from "./commands/contacts.ts";
import { deliveries } from "./commands/deliveries.ts";
import { demo } from "./commands/demo.ts";
import { doctor } from "./commands/doctor.ts";
import { forget } from "./commands/forget.ts";
import { NoLog } from "./commands/log-session.ts";
import { key } from "./commands/key.ts";
import { outreach } from "./commands/outreach.ts";
import { quota } from "./commands/quota.ts";
import { recipients } from "./commands/recipients.ts";
import { replay } from "./commands/replay.ts";
import { sandbox } from "./commands/sandbox.ts";
import { serve } from "./commands/serve.ts";
import { stats } from "./commands/stats.ts";
import { codeOfSystem, sentenceOf } from "./commands/system-fault.ts";
import { token } from "./commands/token.ts";
import { printable } from "./commands/table.ts";
import { writeAll, writeText } from "./commands/write.ts";
import { ConfigError } from "./config/error.ts";
import { handleUncaughtErrors } from "./platform/uncaught-errors.ts";
import { SocialError } from "./networks/network.ts";
import { DamagedCiphertext } from "./privacy/ciphertext.ts";
import { KeysFileMismatch, KeysUnavailable, NoKeysFile } from "./privacy/keys-file.ts";
import { KeysLost } from "./privacy/encrypted-log.ts";
import { RecipientsFileError } from "./outreach/recipients-file/error.ts";
import { ProjectionAhead } from "./projector/restore.ts";
import { TemplateFault } from "./service/service.ts";
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

/** Faults that the operator can mend are told in a sentence; any other is thrown on, and told with its stack. */
function explain(fault: unknown, name: string, terminal: Terminal): number {
  if (fault instanceof UsageError) {
    terminal.err(`${fault.message}\nsee reachlog ${name} --help\n`);
    return EXIT.usage;
  }
  const code = codeOf(fault);
  if (code === undefined) throw fault;
  terminal.err(`${sentenceOf(fault as Error)}\n`);
  return code;
}

function codeOf(fault: unknown): number | undefined {
  if (fault instanceof ConfigError || fault instanceof TemplateFault) return EXIT.config;
  if (fault instanceof KeyError || fault instanceof VaultKeyMismatch || fault instanceof VaultDamaged)
    return EXIT.config;
  if (fault instanceof LogContradicted || fault instanceof SigningKeyRefused) return EXIT.config;
  if (fault instanceof KeysFileMismatch || fault instanceof KeysLost || fault instanceof NoKeysFile) return EXIT.config;
  if (fault instanceof DamagedCiphertext || fault instanceof MovedCiphertext) return EXIT.config;
  if (fault instanceof InvalidEvent || fault instanceof StoreUnusable || fault instanceof ProjectionAhead)
    return EXIT.config;
  if (fault instanceof StoreOwned || fault instanceof StoreBusy) return EXIT.temporary;
  if (fault instanceof SocialError) return fault.kind === "unavailable" ? EXIT.temporary : EXIT.fault;
  if (fault instanceof StoreFull || fault instanceof StoreOverloaded || fault instanceof KeysUnavailable)
    return EXIT.temporary;
  if (fault instanceof NoLog || fault instanceof RecipientsFileError || fault instanceof FileFault) return EXIT.fault;
  if (fault instanceof TargetTaken || fault instanceof BackupFailed) return EXIT.fault;
  const code = codeOfSystem(fault);
  // Whatever file it comes to first: nothing of the service can be kept there.
  if (code === "EROFS") return EXIT.config;
  // A file that is not there, a port in use.
  return code === undefined ? undefined : EXIT.fault;
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
