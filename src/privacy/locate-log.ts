import { checkpointFiles, type CheckpointStore } from "eventstore-lite/proof";
import type { SegmentStorage } from "eventstore-lite/segments";
import type { Config } from "../config/config.ts";
import { type PostgresLog, redactedUrl, type SqliteLog } from "../config/database.ts";
import { checkpointInVault } from "../log/sign-and-compare-checkpoints.ts";
import { logFiles, type LogFiles } from "../log/log-file-paths.ts";
import { postgresStore, sqliteStore, type StorePlace } from "../log/store-backends.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";
import { postgresSecrets } from "../vault/postgres-secrets.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";
import type { Vault } from "../vault/vault.ts";
import { locateSegments } from "../networks/s3/open-segment-storage.ts";

/** Place of a log and of all that belongs to it, in files or on a server. */
export interface LogPlace {
  readonly store: StorePlace;
  readonly secrets: MasterKeyPlace;
  /** True if the keys are not stored next to the log, so that a copy of the log may lack them. */
  readonly keysAreApart: boolean;
  /** Where a service records its clock; undefined for a log on a server, because the server has a clock. */
  readonly clock?: string;
  /**
   * Opens the store of the log's checkpoint. If the checkpoint is in the vault, calls `openVault`, whose result stays
   * open while the store is used.
   */
  checkpoints(openVault: () => Promise<Vault>): Promise<CheckpointStore>;
}

/** The settings that say where a log is. */
interface PlacedConfig {
  readonly log: Config["log"];
  readonly key: Config["key"];
  readonly objectStore: Config["objectStore"];
}

/**
 * Returns the place of the configured log. Throws a ServiceError (usage, configuration) if archived events cannot be
 * where the settings say.
 */
export function locateLog(config: PlacedConfig): LogPlace {
  const { log, key } = config;
  const segments = log.archive === undefined ? undefined : locateSegments(log.archive, config);
  if (log.kind === "postgres") return serverPlace(log, key, segments);
  return filePlace(locateFiles(log), key, log.keysFile !== undefined, segments);
}

function serverPlace(log: PostgresLog, key: Secret | undefined, segments: SegmentStorage | undefined): LogPlace {
  // The service refuses settings with a log on PostgreSQL and without REACHLOG_KEY, so only a defect can lead here.
  if (key === undefined) throw new ServiceError("configuration", "REACHLOG_KEY is missing");
  return {
    store: postgresStore({ ...log, segments }),
    secrets: {
      vault: postgresSecrets({ ...log, store: "vault" }),
      keys: postgresSecrets({ ...log.keys, store: "keys" }),
      key,
      isShared: true,
    },
    keysAreApart: log.keys.url.reveal() !== log.url.reveal(),
    async checkpoints(openVault) {
      const vault = await openVault();
      return checkpointInVault(vault, await vault.stableKey("checkpoints"));
    },
  };
}

/**
 * Returns the place of a log in a file. `key`: the master key, if no file holds it; `segments`: the place of archived
 * events, by default next to the log.
 */
export function filePlace(
  files: LogFiles,
  key: Secret | undefined,
  keysAreApart = false,
  segments?: SegmentStorage,
): LogPlace {
  return {
    store: sqliteStore(files.log, segments),
    secrets: {
      vault: sqliteSecrets(files.vault),
      keys: sqliteSecrets(files.keys),
      key: key ?? files.key,
      isShared: false,
    },
    keysAreApart,
    clock: files.clock,
    checkpoints: async () => checkpointFiles(files),
  };
}

/**
 * Throws a ServiceError (not_found) if the configured log does not exist. A caller whose work would create files next
 * to the log checks this first.
 */
export async function refuseNoLog(config: Parameters<typeof locateLog>[0]): Promise<void> {
  if (await locateLog(config).store.isThere()) return;
  throw new ServiceError(
    "not_found",
    `there is no log at ${redactedUrl(config.log)}: DATABASE_URL names another one, or the service was never started`,
  );
}

/**
 * Returns the paths of a log and of all that belongs to it: next to the log, except keys that `KEYS_FILE` puts
 * elsewhere.
 */
export function locateFiles({ file, keysFile }: SqliteLog): LogFiles {
  const files = logFiles(file);
  return { ...files, keys: keysFile ?? files.keys };
}
