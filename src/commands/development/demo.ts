import { resolve } from "node:path";
import { SCOPE_NAMES } from "../../config/parse-api-tokens.ts";
import { isBun } from "../../platform/runtime-environment-and-env-files.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { findFreePort, isPortFree } from "../../platform/free-port.ts";
import { createLogger } from "../../platform/logger.ts";
import { temporaryFolder } from "../../platform/new-file.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { usageError } from "../../platform/service-error.ts";
import { untilStopped } from "../serve.ts";
import { Command, createNumberParser, type MakeCommand, parsePort, readServedConfig } from "../shared/command.ts";
import { PROGRAM } from "../shared/program-invocation.ts";
import type { Terminal } from "../shared/terminal-answers-and-exit-codes.ts";
import { openLogForHistory } from "./open-log-for-invented-history.ts";
import { loadSandbox, startDatabaseServer } from "./load-sandbox-and-postgres.ts";
import { chatOption, messagingOption } from "./sandbox.ts";

export const demo: MakeCommand = (terminal) =>
  new Command("demo")
    .summary("run the service on a fresh log beside a sandbox of the networks")
    .description(
      `Starts the sandbox and the service on loopback, with sample recipients and a fresh
log, and prints what to do next. Needs no account. Everything is deleted at the
end, unless kept.`,
    )
    .option("--port <port>", "port of the service (0: any free one)", parsePort, 3000)
    .option("--sandbox-port <port>", "port of the sandbox (0: any free one)", parsePort, 4010)
    .option("--keep <folder>", "keep the log there, or use the one already there")
    .option("--busy", "fill a new log with 36 runs, 3,000 clicks and failed deliveries")
    .option("--instances <count>", "serve one log in PostgreSQL with this many processes", parseCount, 1)
    .addOption(chatOption())
    .addOption(messagingOption())
    .examples("reachlog demo --keep ./demo --chat discord")
    .action(async ({ keep, busy = false, ...options }) => {
      const isShared = options.instances > 1;
      if (isShared && keep !== undefined) throw usageError("--keep keeps a log in a file: several instances have none");
      if (isShared && busy) throw usageError("--busy writes a log in a file: several instances have none");
      if (isShared && !isBun) throw usageError("--instances starts processes, which it does on Bun only");
      const { runDemo } = await loadSandbox();
      using folder = keep === undefined ? temporaryFolder("reachlog-demo-") : undefined;
      const product = {
        start: (settings: Terminal["env"], clock?: Clock) => start({ ...terminal, env: settings }, clock),
        openLog: (settings: Terminal["env"], clock: Clock) => openLogForHistory({ ...terminal, env: settings }, clock),
        serve: [process.execPath, process.argv[1] ?? "", "serve"],
        startDatabaseServer,
        choosePort: (port: number, what: string) => choosePort(port, what, terminal),
        program: PROGRAM,
        scopes: SCOPE_NAMES,
      } as const;
      return await runDemo(product, { ...options, busy, directory: folder?.path ?? resolve(keep ?? "") }, terminal);
    });

/** Maximum number of service instances in a demo, because each needs a port and memory. */
const INSTANCES_MAX = 9;

const parseCount = createNumberParser(`--instances is a number from 1 to ${INSTANCES_MAX}`, 1, INSTANCES_MAX);

async function start(terminal: Terminal, clock?: Clock) {
  const config = await readServedConfig(terminal);
  const { startService } = await import("../../service/service.ts");
  const logger = createLogger(config.logLevel, terminal.err, clock ?? Date.now);
  const service = await startService(config, logger, omitUndefined({ clock }));
  return { ...service, untilStopped: () => untilStopped(service, config, terminal) };
}

const LOOPBACK = "127.0.0.1";

/** Returns the requested port of the demo; if it is in use, a free one, which the terminal shows. */
async function choosePort(port: number, what: string, terminal: Terminal): Promise<number> {
  if (port !== 0 && (await isPortFree(LOOPBACK, port))) return port;
  const free = await findFreePort(LOOPBACK);
  if (port !== 0) terminal.err(`port ${port} is in use: the ${what} takes ${free}\n`);
  return free;
}
