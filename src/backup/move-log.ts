import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Config, loadConfig } from "../config/config.ts";
import { configurationError } from "../config/configuration-error.ts";
import { readEnvFile } from "../config/load-env-file.ts";
import type { RawEnvironment } from "../config/environment.ts";
import { refuseServed } from "../log/instance-heartbeats.ts";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { WorkMonitor } from "../log/progress-and-cancellation.ts";
import { locateLog } from "../privacy/locate-log.ts";
import { openLog, type OpenedLog } from "../privacy/open-log.ts";
import { keyId } from "../vault/derive-keys.ts";
import { nameOfKey } from "../vault/master-key.ts";
import type { Manifest } from "./manifest.ts";
import { putBack, refuseTaken } from "./put-backup-in-place.ts";
import { loadMasterKey } from "./restore.ts";
import { writeBackup } from "./write-backup.ts";

/**
 * Where the settings of the log's new place come from: a file in the form of `.env`, and the environment for settings
 * that the file lacks.
 */
interface TargetSettings {
  readonly env: RawEnvironment;
  readonly readFile: (path: string) => string;
  /** Path of the file with the settings for the new location of the log, its vault and its keys. */
  readonly file: string;
}

/**
 * Moves the log of a configuration, its vault and its keys to the place that other settings name: makes a backup,
 * proves it and restores it there. The log at the former place is not changed. Throws a ServiceError.
 */
export async function migrateLog(source: Config, settings: TargetSettings, monitor: WorkMonitor) {
  const { secrets } = locateLog(source);
  const owner = source.log.kind === "sqlite" ? { owner: `reachlog migrate, pid ${process.pid}` } : {};
  await using log = await openLog(source, owner);
  const target = loadTarget(settings, log.master);
  await refuseServed(log);
  // If only the log moves, its vault and keys stay where they are. They are bound to this log already, so `refuseTaken`
  // must accept them.
  await refuseTaken(target, log.id, true);
  const { position, hash } = (await copyTo(monitor, log, source, target)).log;
  return { position, hash, to: target.log, masterKey: nameOfKey(secrets) };
}

async function copyTo(monitor: WorkMonitor, log: OpenedLog, source: Config, target: Config): Promise<Manifest> {
  const [beside = tmpdir()] = [source.log, target.log].flatMap((one) =>
    one.kind === "sqlite" ? [dirname(one.file)] : [],
  );
  mkdirSync(beside, { recursive: true });
  using scratch = temporaryFolder("reachlog-migration-", beside);
  const folder = join(scratch.path, "backup");
  const { secrets } = locateLog(source);
  const { log: copied } = await monitor.showProgress("copying", (await log.head()).position, (onProgress) =>
    writeBackup({ log, secrets }, folder, { clock: systemClock, onProgress }),
  );
  const beforePlacing = async (): Promise<void> => {
    if (monitor.isInterrupted()) throw new ServiceError("busy", "interrupted: nothing was moved");
    await refuseServed(log);
    if ((await log.head()).hash === copied.hash) return;
    throw new ServiceError(
      "busy",
      "another process appended to the log during the migration, so nothing was moved: try again",
    );
  };
  return await putBack(monitor, folder, target, { master: log.master, beforePlacing });
}

/** Names of the settings that locate a log. Those of the former place do not apply to the new one. */
const PLACE = ["DATABASE_URL", "KEYS_FILE", "KEYS_DATABASE_URL"].flatMap((name) => [name, `${name}_FILE`]);

/**
 * Loads the configuration of the new place: the settings in its file, then the current ones except those that locate
 * the log. The master key stays. Throws a ServiceError (configuration, usage).
 */
function loadTarget({ env: current, readFile, file }: TargetSettings, master: Uint8Array): Config {
  const { values: given, faults } = readEnvFile(file, current);
  if (faults.length > 0) throw configurationError(faults);
  if (!PLACE.some((name) => name.startsWith("DATABASE_URL") && given[name] !== undefined)) {
    throw new ServiceError("usage", `${file} does not set DATABASE_URL: add it`);
  }
  const others = Object.entries(current).filter(([name]) => !PLACE.includes(name));
  const env: Record<string, string | undefined> = { ...Object.fromEntries(others), ...given };
  if (env["REACHLOG_KEY"] === undefined && env["REACHLOG_KEY_FILE"] === undefined) {
    env["REACHLOG_KEY"] = Buffer.from(master).toString("hex");
  }
  const config = loadConfig(env, readFile);
  if (keyId(loadMasterKey(config)) === keyId(master)) return config;
  throw new ServiceError(
    "configuration",
    `REACHLOG_KEY in ${file} is another master key: keep the present one; reachlog key rotate replaces it`,
  );
}
