import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { VERSION } from "../../platform/version.ts";
import { account } from "../account.ts";
import { archive } from "../backup/archive.ts";
import { audit } from "../audit.ts";
import { backup } from "../backup.ts";
import { clicks } from "../clicks.ts";
import { Command, runCommand, type MakeCommand } from "./command.ts";
import { EXIT, type Terminal } from "./terminal.ts";
import { completion } from "../completion.ts";
import { contacts } from "../contacts.ts";
import { deliveries } from "../deliveries.ts";
import { demo } from "../development/demo.ts";
import { doctor } from "../doctor.ts";
import { toExitCode, describeFault } from "./system-fault.ts";
import { forget } from "../forget.ts";
import { links } from "../links.ts";
import { key } from "../key.ts";
import { mcp } from "../mcp.ts";
import { migrate } from "../backup/migrate.ts";
import { outreach } from "../outreach.ts";
import { clockCorrected, quota } from "../quota.ts";
import { ready } from "../ready.ts";
import { recipients } from "../recipients.ts";
import { suppressions } from "../recipients/suppressions.ts";
import { replay } from "../replay.ts";
import { results } from "../results.ts";
import { restoreCommand, restored } from "../restore.ts";
import { sandbox } from "../development/sandbox.ts";
import { witness } from "../witness.ts";
import { serve } from "../serve.ts";
import { settings } from "../settings.ts";
import { stats } from "../stats.ts";
import { token } from "../token.ts";
import { upgradeCheck } from "../upgrade-check.ts";

/** In the order of the overview: first steps, daily work, rare work. */
const COMMANDS: readonly MakeCommand[] = [
  serve,
  demo,
  sandbox,
  doctor,
  ready,
  settings,
  recipients,
  suppressions,
  outreach,
  contacts,
  results,
  stats,
  quota,
  clicks,
  links,
  replay,
  audit,
  witness,
  archive,
  backup,
  restoreCommand,
  restored,
  clockCorrected,
  migrate,
  upgradeCheck,
  forget,
  deliveries,
  account,
  token,
  key,
  mcp,
  completion,
];

/** All commands: what help, suggestions and the tests of the documents are made from. */
export const reachlog: MakeCommand = (terminal) => {
  const program: CommandUnknownOpts = new Command("reachlog")
    .description("Event-sourced outreach and link-click tracking.")
    .version(`reachlog ${VERSION}`, "-V, --version", "show the version")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText(
      "after",
      "\nSettings come from the environment and .env; reachlog settings lists them all.\nreachlog COMMAND --help says more.",
    );
  for (const make of COMMANDS) program.addCommand(make(terminal));
  return program;
};

/**
 * Runs one command line. A failure that the operator can do something about is one sentence; any other is thrown, and
 * shown with its stack. Answers the exit code.
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await runCommand(reachlog, args, terminal);
  } catch (fault) {
    const exitCode = toExitCode(fault);
    if (exitCode === undefined) throw fault;
    terminal.err(`${describeFault(fault as Error)}\n`, "red");
    if (exitCode === EXIT.usage) terminal.err(`see ${findCommandPath(args)} --help\n`);
    return exitCode;
  }
}

/** The command that these arguments lead to, as it is typed. */
function findCommandPath(args: readonly string[]): string {
  const silent: Terminal = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };
  let command = reachlog(silent);
  const path = [command.name()];
  for (const arg of args) {
    const next = command.commands.find((one) => one.name() === arg);
    if (next === undefined) break;
    path.push(arg);
    command = next;
  }
  return path.join(" ");
}
