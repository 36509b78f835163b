import { within } from "../platform/clock-ids-and-timers.ts";
import { createLogger } from "../platform/logger.ts";
import { untilAborted } from "../platform/signals.ts";
import { VERSION } from "../platform/version.ts";
import type { Service } from "../service/service.ts";
import { Command, readServedConfig, type MakeCommand } from "./shared/command.ts";
import { EXIT, type Terminal } from "./shared/terminal-answers-and-exit-codes.ts";
import type { Config } from "../config/config.ts";
import { redactedUrl } from "../config/database.ts";
import { PROGRAM } from "./shared/program-invocation.ts";
import { listPartNames } from "../config/optional-parts.ts";

export const serveCommand: MakeCommand = (terminal) =>
  new Command("serve")
    .summary("run the service")
    .description(
      `Runs the service with the configuration of the environment (and .env), and
reports all of its faults at once. reachlog settings lists every setting.

Ends on SIGTERM or SIGINT: no new requests, those in flight are answered, a run
ends between two messages, dispatches in flight complete; at the latest after
SHUTDOWN_SECONDS. A second signal, a second later or more, ends it at once.

The service keeps a signed checkpoint of the log's head beside the log. It does
not start (78) if the log contradicts the checkpoint: its end was lost, or its
history altered. Nor does it start (78) without the key file of the log's
personal data, or without the vault after a rotation of the master key; nor if
keys and vault are there without their log, or belong to another log.`,
    )
    .option("--accept-loss", "continue with the rest of a log that lost events, or begin a new one; the log records it")
    .option("--accept-lost-keys", "use new keys: data encrypted with the lost ones reads as erased")
    .option(
      "--take-over-keys",
      "take over vault and keys from a log that no longer exists; a service that still uses that log ends",
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 stopped, 1 a file or a port is not available, 70 the log failed
(restart), 75 another service owns the log, the disk is full, or the server of
the log does not answer (try later), 78 the configuration is wrong or differs
from that of the other instances, or the log contradicts its checkpoint.`,
    )
    .action(async ({ acceptLoss = false, acceptLostKeys = false, takeOverKeys = false }) => {
      const config = await readServedConfig(terminal);
      const logger = createLogger(config.logLevel, terminal.err, Date.now);
      for (const warning of config.warnings) logger.warn(warning);
      const { startService } = await import("../service/service.ts");
      const service = await startService(config, logger, { acceptLoss, acceptLostKeys, takeOverKeys });
      if (terminal.interactive) welcome(terminal, service, config);
      return untilStopped(service, config, terminal);
    });

/**
 * Greets an operator who starts the service at a terminal. Under a supervisor nothing is written, because its log must
 * have only lines of JSON.
 */
function welcome({ err }: Terminal, { url }: Service, config: Config): void {
  const { configured, missing } = listPartNames(config);
  const list = (names: readonly string[]): string => (names.length === 0 ? "nothing" : names.join(", "));
  const next = missing.length === 0 ? `The console: ${url}` : `What is left to set up: ${url}/setup`;
  err(`\nreachlog ${VERSION} serves ${url}\n`, "bold");
  err(`  log             ${redactedUrl(config.log)}
  configured      ${list(configured)}
  not configured  ${list(missing)}

${next}
To check the credentials at the networks: ${PROGRAM} doctor --online
Stop with Ctrl-C.

`);
}

/** Serves until a signal comes or the log fails; then stops, within the configured time. Returns the exit code. */
export async function untilStopped(service: Service, config: Config, terminal: Terminal): Promise<number> {
  const logger = createLogger(config.logLevel, terminal.err, Date.now);
  const stopped = untilAborted(terminal.signal).then(() => "stopped" as const);
  const stop = async () => service[Symbol.asyncDispose]().then(() => true);
  const why = await Promise.race([stopped, service.failed]);
  if (why !== "stopped") {
    logger.error("the log failed; restart", { error: String(why) });
    // Although nothing can be recorded any more, callers who wait still get a 503, which tells them more than a broken
    // connection.
    await within(FAILED_STOP_MS_MAX, stop()).catch(() => {});
    return EXIT.software;
  }
  logger.info("stopping");
  if ((await within(config.http.shutdownSeconds * 1000, stop())) !== true) {
    logger.warn("stopped before everything in flight had ended");
  }
  return EXIT.ok;
}

/**
 * Time in ms to stop after the log has failed. All requests are then refused within milliseconds, so a supervisor need
 * not wait longer.
 */
const FAILED_STOP_MS_MAX = 1_000;
