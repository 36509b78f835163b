import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { VERSION } from "../../platform/version.ts";
import { account } from "../account.ts";
import { audit } from "../audit.ts";
import { archive, backup, migrate } from "../backup-migrate-and-archive.ts";
import { Command, runCommand, type MakeCommand } from "./command.ts";
import { EXIT, type Terminal } from "./terminal-answers-and-exit-codes.ts";
import { campaigns } from "../campaigns.ts";
import { completion } from "../completion.ts";
import { deliveries } from "../deliveries-and-test-message.ts";
import { demo } from "../development/demo.ts";
import { doctor } from "../doctor.ts";
import { describeFault } from "../../platform/describe-system-errors.ts";
import { toExitCode } from "./exit-code.ts";
import { init } from "../setup/init.ts";
import { links } from "../links.ts";
import { key } from "../master-key.ts";
import { mcp } from "../mcp.ts";
import { outreach } from "../outreach.ts";
import { ready } from "../ready.ts";
import { recipients } from "../recipients.ts";
import { suppressions } from "../recipients/import-export-suppressions.ts";
import { replay } from "../replay.ts";
import { clockCorrected, restoreCommand, restored } from "../restore-and-clock-corrected.ts";
import { sandbox } from "../development/sandbox.ts";
import { witness } from "../witness.ts";
import { serveCommand } from "../serve.ts";
import { settings } from "../setup/print-default-settings.ts";
import { token } from "../token.ts";
import { upgradeCheck } from "../upgrade-check.ts";
import { isOperationWord, loadOperations } from "../../operations.ts";
import type { AnyOperation } from "../../platform/operation.ts";
import { toCommand, withOperations } from "./operation-command.ts";

/** All commands by topic, in the order of the help: first steps, daily work, rare work. A string names an operation. */
const TOPICS: Readonly<Record<string, readonly (MakeCommand | string)[]>> = {
  "Set up and run": [init, serveCommand, demo, sandbox, doctor, ready, settings],
  "Recipients and messages": [recipients, suppressions, campaigns, outreach],
  "Figures and links": ["results", "stats", "quota", "runs", "report", "clicks", links],
  "Log and proof": [replay, audit, witness, archive],
  "Backups and moves": [backup, restoreCommand, restored, clockCorrected, migrate, upgradeCheck],
  "Deliveries and access": [deliveries, account, token, key],
  "For other programs": [mcp, completion],
};

const COMMANDS = Object.entries(TOPICS).flatMap(([topic, all]) => all.map((one) => ({ topic, one })));

/** Creates the program with all commands and operations, for help, suggestions and tests of the documents. */
export async function loadReachlog(): Promise<MakeCommand> {
  return createReachlog(await loadOperations());
}

/** Creates the program with all commands that are written by hand, and with the commands of the given operations. */
const createReachlog =
  (operations: readonly AnyOperation[]): MakeCommand =>
  (terminal) => {
    const program: CommandUnknownOpts = new Command("reachlog")
      .description("Event-sourced outreach and link-click tracking.")
      .version(`reachlog ${VERSION}`, "-V, --version", "show the version")
      .commandsGroup("Help:")
      .helpCommand("help [command]", "show the help of a command")
      .addHelpText(
        "after",
        "\nSettings come from the environment and .env; reachlog settings lists them all.\nreachlog COMMAND --help says more.",
      );
    for (const { topic, one } of COMMANDS) {
      const described = typeof one === "string" ? operations.find(({ name }) => name === one) : undefined;
      const make = typeof one === "string" ? described && toCommand(described) : one;
      if (make === undefined) continue;
      program.addCommand(withOperations(make, operations)(terminal).helpGroup(`${topic}:`));
    }
    return program;
  };

/**
 * Runs one command line. A failure that the operator can correct is written as one sentence; any other is thrown, and
 * shown with its stack. Returns the exit code.
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const reachlog = createReachlog(await loadNeeded(args));
  try {
    return await runCommand(reachlog, args, terminal);
  } catch (fault) {
    const exitCode = toExitCode(fault);
    if (exitCode === undefined) throw fault;
    terminal.err(`${describeFault(fault as Error)}\n`, "red");
    if (exitCode === EXIT.usage) terminal.err(`see ${findCommandPath(reachlog, args)} --help\n`);
    return exitCode;
  }
}

/**
 * Loads only the operations that the command line needs: those whose names begin with its first word. A command that is
 * written by hand needs none; help, completion and a misspelt word need all.
 */
async function loadNeeded(args: readonly string[]): Promise<readonly AnyOperation[]> {
  const [word] = args;
  if (isOperationWord(word)) return loadOperations(word);
  const isOther = COMMANDS.some(
    ({ one }) => typeof one !== "string" && one !== completion && one(SILENT).name() === word,
  );
  return isOther ? [] : loadOperations();
}

const SILENT: Terminal = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };

/** Returns the words of the command that these arguments call. */
function findCommandPath(reachlog: MakeCommand, args: readonly string[]): string {
  let command = reachlog(SILENT);
  const path = [command.name()];
  for (const arg of args) {
    const next = command.commands.find((one) => one.name() === arg);
    if (next === undefined) break;
    path.push(arg);
    command = next;
  }
  return path.join(" ");
}
