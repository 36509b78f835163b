import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { redactedUrl, type PostgresLog } from "../config/database.ts";
import { signHead } from "../log/sign-and-compare-checkpoints.ts";
import { refuseServed } from "../log/instance-heartbeats.ts";
import { logFiles } from "../log/log-file-paths.ts";
import { restoreToServer, sqliteStore } from "../log/store-backends.ts";
import { verifyLog } from "../log/verify-log.ts";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";
import { keysIn } from "../privacy/key-store.ts";
import { openKeyring } from "../privacy/keyring.ts";
import { keysLost, newestKeys, refuseForeignSecrets } from "../privacy/bind-secrets-to-log.ts";
import { locateFiles, locateLog, type LogPlace } from "../privacy/locate-log.ts";
import { openLogAt } from "../privacy/open-log.ts";
import type { Binding, SecretPlace } from "../vault/secret-database.ts";
import { openSecretStore } from "../vault/secret-store.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import type { WorkMonitor } from "../log/progress-and-cancellation.ts";
import { copySecrets, copyUnchanged } from "./copy-backup-files-and-secrets.ts";
import { NAMES, readManifest, type Manifest } from "./manifest.ts";
import { place, refuseMissing, rehearse, SCRATCH_LOG, type RehearseOptions } from "./rehearse-restore.ts";

/**
 * Throws a ServiceError if the configured place is taken: `conflict` by a log, `busy` by a service with an empty log.
 * Unless `takeOverKeys` is true, throws `configuration` if vault or keys there are bound to another log or another
 * place.
 */
export async function refuseTaken(config: Config, log: string | undefined, takeOverKeys: boolean): Promise<void> {
  await refuseLog(config);
  if (!takeOverKeys) await refuseForeignSecrets(locateLog(config), log);
}

async function refuseLog(config: Config): Promise<void> {
  if (config.log.kind === "sqlite") {
    const { file } = config.log;
    const taken = [file, `${file}-wal`, `${file}-shm`].filter((one) => existsSync(one));
    if (taken.length === 0) return;
    throw new ServiceError("conflict", `nothing is overwritten: move ${taken.join(", ")} away first`);
  }
  const { store } = locateLog(config);
  if (!(await store.isThere())) return;
  await using log = await store.open();
  const { position } = await log.head();
  if (position === 0) return await refuseServed(log);
  throw new ServiceError("conflict", `nothing is overwritten: the log in ${store.name} holds ${position} events`);
}

/** Binds the vault and keys at a place to the log that is there now, so that no other log can use them. */
export async function bindNext(place: LogPlace): Promise<void> {
  for (const file of ["keys", "vault"] as const) {
    const secrets = place.secrets[file];
    if (!(await secrets.isThere())) continue;
    await using log = await place.store.open();
    await using database = await secrets.open();
    await database.transact(async (rows) => {
      await rows.relabel({ ...(await rows.label()), binding: nextBinding(place, file, log.id) });
    });
  }
}

/**
 * Returns the binding of restored vault or keys to the log with the id `log`, in whichever epoch it is opened next.
 * Keys or a vault next to the log are not bound to a place, because they move with the log.
 */
function nextBinding({ store, keysAreApart }: LogPlace, file: "keys" | "vault", log: string): Binding {
  return { log, epoch: null, place: file === "keys" && keysAreApart ? store.name : null };
}

interface PutBackOptions {
  readonly acceptLostKeys?: RehearseOptions["acceptLostKeys"];
  readonly master: Uint8Array;
  /** True to prove the backup without restoring it. */
  readonly isRehearsal?: boolean;
  /**
   * The restore calls this when it has proved the backup, and before it writes anything; if this throws, nothing has
   * changed.
   */
  readonly beforePlacing?: () => Promise<void>;
}

/**
 * Proves a backup in a scratch folder, then restores it to the configured place. If that is a server, proves the
 * restored log there once more. Throws a ServiceError; if the first proof fails, nothing is restored.
 */
export async function putBack(
  monitor: WorkMonitor,
  folder: string,
  config: Config,
  { master, isRehearsal = false, beforePlacing, acceptLostKeys = false }: PutBackOptions,
): Promise<Manifest> {
  const { log } = config;
  const isFile = log.kind === "sqlite" && !isRehearsal;
  if (isFile) for (const file of [log.file, locateFiles(log).keys]) mkdirSync(dirname(file), { recursive: true });
  using temporary = temporaryFolder("reachlog-rehearsal-", isFile ? dirname(log.file) : undefined);
  const { path: scratch } = temporary;
  const manifest = await monitor.showProgress("verifying", readManifest(folder).log.position, (onProgress) =>
    rehearse(folder, master, { scratch, onProgress, acceptLostKeys }),
  );
  if (isRehearsal) return manifest;
  await beforePlacing?.();
  // A service may have started while the backup was proved.
  await refuseLog(config);
  const target = locateLog(config);
  const { secrets } = target;
  for (const file of ["keys", "vault"] as const) {
    // The rehearsal has opened, and so may have changed, its copies of these files. The restore therefore needs fresh
    // copies.
    const copy = join(scratch, `${file}.unused`);
    await copyUnchanged(join(folder, NAMES[file]), copy, manifest.files[file]);
    await copySecrets(sqliteSecrets(copy), secrets[file], nextBinding(target, file, manifest.log.id));
  }
  const scratchLog = logFiles(join(scratch, SCRATCH_LOG)).log;
  if (!acceptLostKeys) await refuseOtherKeys(secrets.keys, scratchLog, manifest, master);
  if (log.kind === "sqlite") await place(folder, manifest, locateFiles(log), master);
  else await placeOnServer(monitor, config, log, { file: scratchLog, manifest });
  return manifest;
}

/** Throws if the keys at the restored log's place are another log's, or an older copy that lacks keys of this log. */
async function refuseOtherKeys(place: SecretPlace, file: string, manifest: Manifest, master: Uint8Array) {
  await using secrets = await openSecretStore({ place, master });
  const keyring = await openKeyring(keysIn(secrets), systemClock);
  await using log = await sqliteStore(file).open();
  const wanted = await newestKeys(log);
  if (wanted !== undefined && wanted !== keyring.id) throw keysLost(place.name, true);
  await refuseMissing(place.name, log, keyring, manifest);
}

/**
 * Restores the log to a server in one step, and then proves it there. Vault and keys are already in place, so the log
 * is never there without them.
 */
async function placeOnServer(
  monitor: WorkMonitor,
  config: Config,
  log: PostgresLog,
  { file, manifest }: { readonly file: string; readonly manifest: Manifest },
): Promise<void> {
  await monitor.showProgress("copying", manifest.log.position, (onProgress) =>
    restoreToServer(log, file, (copied) => {
      if (monitor.isInterrupted()) throw new ServiceError("busy", `interrupted: ${log.shown} holds no log`);
      onProgress(copied);
    }),
  );
  await monitor.showProgress("verifying", manifest.log.position, (onProgress) =>
    proveOnServer(config, manifest, onProgress),
  );
}

/** Verifies the log that was restored to a server, and signs its head with the signing key in the server's vault. */
async function proveOnServer(config: Config, manifest: Manifest, onProgress: (checked: number) => void): Promise<void> {
  await using log = await openLogAt(locateLog(config));
  const { verification } = await verifyLog(log, [], { onProgress });
  const { head, fault } = verification;
  const { position, hash } = manifest.log;
  if (fault !== undefined || head.position !== position || head.hash !== hash) {
    throw new ServiceError(
      "damaged",
      `${redactedUrl(config.log)} does not hold the log that was written to it: do not use it`,
    );
  }
  await log.goOn();
  await log.checkpoints.write(await signHead(log, head, await log.checkpoints.loadKey(), systemClock));
  // The operator restored this log on purpose. Events that an instance remembers and this log lacks are not reported as
  // a loss.
  await log.checkpoints.acceptLoss();
}
