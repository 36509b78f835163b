import type { Config } from "../config/config.ts";
import type { PostgresLog, SqliteLog } from "../config/log.ts";
import { checkpointFiles, checkpointInVault, type CheckpointStore } from "../log/checkpoint.ts";
import { logFiles, type LogFiles } from "../log/log-files.ts";
import { postgresStore, sqliteStore, type StorePlace } from "../log/store-place.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";
import { postgresSecrets } from "../vault/postgres-secrets.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";
import type { Vault } from "../vault/token-vault.ts";

/** Locates a log and all that belongs to it; hides the engine. */
export interface LogPlace {
  readonly store: StorePlace;
  readonly secrets: MasterKeyPlace;
  /** True if the keys are not stored beside the log, so that a copy of the log may lack them. */
  readonly keysAreApart: boolean;
  /** Where its checkpoint is. `openVault`: asked where that is the vault, which stays open for as long as it is used. */
  checkpoints(openVault: () => Promise<Vault>): Promise<CheckpointStore>;
}

export function locateLog({ log, key }: Config): LogPlace {
  if (log.kind === "postgres") return serverPlace(log, key);
  return filePlace(locateFiles(log), key, log.keysFile !== undefined);
}

function serverPlace(log: PostgresLog, key: Secret | undefined): LogPlace {
  // The configuration is refused without it.
  if (key === undefined) throw new ServiceError("configuration", "REACHLOG_KEY is missing");
  return {
    store: postgresStore(log),
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

/** `key`: the master key where no file holds it. */
export function filePlace(files: LogFiles, key: Secret | undefined, keysAreApart = false): LogPlace {
  return {
    store: sqliteStore(files.log, files.segments),
    secrets: {
      vault: sqliteSecrets(files.vault),
      keys: sqliteSecrets(files.keys),
      key: key ?? files.key,
      isShared: false,
    },
    keysAreApart,
    checkpoints: async () => checkpointFiles(files),
  };
}

/** All files are beside the log, except keys and segments that `KEYS_FILE` and `ARCHIVE_FOLDER` put elsewhere. */
export function locateFiles({ file, keysFile, segments }: SqliteLog): LogFiles {
  const files = logFiles(file);
  return { ...files, keys: keysFile ?? files.keys, segments: segments ?? files.segments };
}
