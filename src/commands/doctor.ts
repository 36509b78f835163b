import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { createLogger } from "../platform/logger.ts";
import { examineInstallation } from "../service/examine-installation.ts";
import { Command, readServedConfig, type MakeCommand } from "./shared/command.ts";
import { report } from "./shared/print-findings.ts";

export const doctor: MakeCommand = (terminal) =>
  new Command("doctor")
    .summary("check configuration, log, keys and, with --online, the networks")
    .description(
      `Checks the configuration, the log's hash chain, the key and the vault, and
whether a crash would write a core dump. Each is ok, a warning, missing (not there
yet, or not configured) or WRONG, with what to do. Exit code 1 when one is WRONG.`,
    )
    .option(
      "--online",
      "also ask each configured network whether its credential works, and the witness; nothing is posted",
    )
    .option("--json", "answer with one JSON object for each check")
    .examples("reachlog doctor --online")
    .action(async ({ online, json }) => {
      const config = await readServedConfig(terminal);
      const logger = createLogger("warn", terminal.err, systemClock);
      const findings = await examineInstallation(config, { isOnline: online === true, logger });
      return report(terminal, findings, json === true);
    });
