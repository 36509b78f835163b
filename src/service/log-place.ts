import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Config } from "../config/config.ts";
import type { PostgresLog, SqliteLog } from "../config/log.ts";
import { checkpointFiles, checkpointInDatabase, type CheckpointStore } from "../log/checkpoint-store.ts";
import { logFiles, type LogFiles } from "../log/log-files.ts";
import { postgresStore, sqliteStore, type StorePlace } from "../log/store-place.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";
import { postgresSecrets } from "../vault/postgres-secrets.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";

/** Where a log is, and all that belongs to it: which engine, only this knows. */
export interface LogPlace {
  readonly store: StorePlace;
  readonly secrets: MasterKeyPlace;
  /** Where its checkpoint is. `seed`: what the key is made of that signs it, where no file holds that key. */
  checkpoints(store: EventStore<Event>, seed: () => Promise<Uint8Array>): Promise<CheckpointStore>;
}

export function logPlaceOf({ log, key }: Config): LogPlace {
  return log.kind === "postgres" ? serverPlace(log, key) : filePlace(filesOf(log), key);
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
    checkpoints: async (store, seed) => checkpointInDatabase(store, await seed()),
  };
}

/** `key`: the master key where no file holds it. */
export function filePlace(files: LogFiles, key: Secret | undefined): LogPlace {
  return {
    store: sqliteStore(files.log),
    secrets: {
      vault: sqliteSecrets(files.vault),
      keys: sqliteSecrets(files.keys),
      key: key ?? files.key,
      isShared: false,
    },
    checkpoints: async () => checkpointFiles(files),
  };
}

/** Everything lies beside the log, but for the keys of personal data where their own backups are short-lived. */
export function filesOf({ file, keysFile }: SqliteLog): LogFiles {
  const files = logFiles(file);
  return { ...files, keys: keysFile ?? files.keys };
}
