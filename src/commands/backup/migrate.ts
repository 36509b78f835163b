import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Config } from "../../config/config.ts";
import { redactedUrl } from "../../config/database.ts";
import { configurationError } from "../../config/error.ts";
import { readEnvFile } from "../../config/load-env-file.ts";
import { refuseServed } from "../../log/instance-heartbeats.ts";
import { systemClock } from "../../platform/clock.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { locateLog } from "../../service/log-place.ts";
import { openLog, type OpenedLog } from "../../service/open.ts";
import { keyId } from "../../vault/derive-keys.ts";
import { nameOfKey } from "../../vault/master-key.ts";
import type { Manifest } from "./manifest.ts";
import { putBack, refuseTaken } from "./put-back.ts";
import { writeBackup } from "./write-backup.ts";
import { absolutePath, Command, JSON_OPTION, readConfig, type MakeCommand } from "../shared/command.ts";
import { answer, type Terminal } from "../shared/terminal.ts";
import { requireLog } from "../shared/log-session.ts";
import { temporaryFolder } from "../shared/new-file.ts";
import { withProgress } from "../shared/progress.ts";
import { loadMasterKey } from "../restore.ts";

export const migrate: MakeCommand = (terminal) =>
  new Command("migrate")
    .summary("move log, vault and keys to another place, such as PostgreSQL")
    .description(
      `Moves the log of this configuration, its vault and the keys of personal data to
where other settings have them: from a file to PostgreSQL, or back. All
positions, times and hashes stay the same, and so do cursors, idempotency keys,
tokens, erasures and suppressions. It makes a backup, proves it, and restores it
to the new place, which must be empty. A copy on a server is verified there once
more, and its head is signed again. The former place does not change.

The settings are a file in the form of .env, so that no password is on a command
line: the DATABASE_URL of the new place, and KEYS_DATABASE_URL or KEYS_FILE if
its keys are elsewhere. The master key stays the same: the content of a key file
is the REACHLOG_KEY of the new place.`,
    )
    .argument("<settings>", "a file with the settings of the new place", absolutePath)
    .option(...JSON_OPTION)
    .examples("reachlog migrate postgres.env")
    .addHelpText(
      "after",
      `
Stop the service first: a running service's log is not moved. The command needs
room for two copies of the log, beside the one that is a file, or in TMPDIR. You
may delete a reachlog-*-* there, and a schema "eventstore import ..." on a
server: a killed migration leaves them. The first start in the new place records
that the log was restored: no run starts on that day. Never serve both places:
they would be two histories of one log.`,
    )
    .action(async (file, { json }) => {
      const source = await requireLog(terminal);
      const { secrets } = locateLog(source);
      const owner = source.log.kind === "sqlite" ? { owner: `reachlog migrate, pid ${process.pid}` } : {};
      await using log = await openLog(source, owner);
      const target = loadTarget(terminal, file, log.master);
      await refuseServed(log);
      // Keys that stay where they are go on with the log.
      await refuseTaken(target, log.id, true);
      const { position, hash } = (await copyTo(terminal, log, source, target)).log;
      const to = redactedUrl(target.log);
      const text = `${position} events are moved to ${to}, the chain is whole; head ${position} ${hash}\n`;
      answer(terminal, json, { to, position, hash }, text);
      terminal.err(
        `start the service with the settings of ${file} and the same master key (${nameOfKey(secrets)}), ` +
          `and never again on ${redactedUrl(source.log)}\n`,
      );
    });

async function copyTo(terminal: Terminal, log: OpenedLog, source: Config, target: Config): Promise<Manifest> {
  const [beside = tmpdir()] = [source.log, target.log].flatMap((one) =>
    one.kind === "sqlite" ? [dirname(one.file)] : [],
  );
  mkdirSync(beside, { recursive: true });
  using scratch = temporaryFolder("reachlog-migration-", beside);
  const folder = join(scratch.path, "backup");
  const { secrets } = locateLog(source);
  const { log: copied } = await withProgress(terminal, "copying", (await log.head()).position, (onProgress) =>
    writeBackup({ log, secrets }, folder, { clock: systemClock, onProgress }),
  );
  const beforePlacing = async (): Promise<void> => {
    if (terminal.signal.aborted) throw new ServiceError("busy", "interrupted: nothing was moved");
    await refuseServed(log);
    if ((await log.head()).hash === copied.hash) return;
    throw new ServiceError("busy", "the log was appended to meanwhile, and nothing was moved: try again");
  };
  return await putBack(terminal, folder, target, { master: log.master, beforePlacing });
}

/** Settings that locate the log; the new place inherits none of them. */
const PLACE = ["DATABASE_URL", "KEYS_FILE", "KEYS_DATABASE_URL"].flatMap((name) => [name, `${name}_FILE`]);

/** This configuration with other settings, and the master key in force. Throws a ServiceError (configuration, usage). */
function loadTarget(terminal: Terminal, file: string, master: Uint8Array): Config {
  const { values: given, faults } = readEnvFile(file, terminal.env);
  if (faults.length > 0) throw configurationError(faults);
  if (!PLACE.some((name) => name.startsWith("DATABASE_URL") && given[name] !== undefined)) {
    throw new ServiceError("usage", `${file} sets no DATABASE_URL`);
  }
  const others = Object.entries(terminal.env).filter(([name]) => !PLACE.includes(name));
  const env: Record<string, string | undefined> = { ...Object.fromEntries(others), ...given };
  if (env["REACHLOG_KEY"] === undefined && env["REACHLOG_KEY_FILE"] === undefined) {
    env["REACHLOG_KEY"] = Buffer.from(master).toString("hex");
  }
  const config = readConfig({ ...terminal, env });
  if (keyId(loadMasterKey(config)) === keyId(master)) return config;
  throw new ServiceError(
    "configuration",
    `REACHLOG_KEY of ${file} is another master key: reachlog key rotate replaces it`,
  );
}
