import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Head } from "eventstore-lite";
import { findLoss, signHead } from "../log/sign-and-compare-checkpoints.ts";
import { createEventLog, type EventMetadata, STREAMS, eventAt } from "../log/event-log.ts";
import type { StorePlace } from "../log/store-backends.ts";
import { isoTime, makeId, type Clock } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";
import { VERSION } from "../platform/version.ts";
import type { OpenedLog } from "../privacy/open-log.ts";
import { keyId, KeyMismatch } from "../vault/derive-keys.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";
import { openSecretStore } from "../vault/secret-store.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";
import type { WorkMonitor } from "../log/progress-and-cancellation.ts";
import { makeNewFile, syncFolder } from "../platform/new-file.ts";
import { withPath } from "../platform/describe-system-errors.ts";
import { copySecrets, measure, measureAll } from "./copy-backup-files-and-secrets.ts";
import {
  encryptSigningKey,
  MANIFEST,
  NAMES,
  SECRET_FILES,
  signManifest,
  type BackupFile,
  type Manifest,
} from "./manifest.ts";
import { isVisitorRef } from "../privacy/daily-encryption-keys.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** The log that is backed up, and the place of its secrets. */
export interface BackupSource {
  readonly log: OpenedLog;
  readonly secrets: MasterKeyPlace;
}

export interface WriteOptions {
  readonly clock: Clock;
  readonly onProgress?: (checked: number) => void;
}

/**
 * Writes a backup of a log and its secrets while instances use them. The folder has another name until all its files
 * are complete and durable. Throws a ServiceError (conflict, damaged, busy), or what the store throws.
 */
export async function writeBackup(source: BackupSource, folder: string, options: WriteOptions): Promise<Manifest> {
  if (existsSync(folder)) throw new ServiceError("conflict", `${folder} exists already: nothing is overwritten`);
  const partial = `${folder}.${randomUUID()}.partial`;
  withPath(dirname(partial), () => mkdirSync(partial, { mode: 0o700 }));
  try {
    const manifest = await fill(source, partial, options);
    renameSync(partial, folder);
    syncFolder(dirname(partial));
    return manifest;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/**
 * Fills a backup's folder, the log first: each key exists before data is encrypted with it, so keys copied later open
 * all of the copied log. Salts of visitors are left out, because a backup would keep them beyond their day.
 */
async function fill(source: BackupSource, folder: string, { clock, onProgress }: WriteOptions): Promise<Manifest> {
  const { log } = source;
  const file = join(folder, NAMES.log);
  const { head } = await log.backup(file, omitUndefined({ onProgress }));
  const unsigned = {
    format: 1,
    version: VERSION,
    made_at: isoTime(clock()),
    log: { id: log.id, position: head.position, hash: head.hash },
    master_key: keyId(log.master),
    /**
     * Sizes and hashes of the backup's files. A key deleted between the copies of the log and of the keys is missing;
     * the key store tells that it was erased on purpose.
     */
    files: { log: measure(file), ...(await copyRest(source, folder, { head, clock })) },
  } as const;
  const manifest = signManifest<Manifest>(unsigned, log.master);
  await makeNewFile(join(folder, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`);
  return manifest;
}

/** Writes the files of a backup whose log ends at `head`: keys, vault, the signed head and the key that signed it. */
export async function copyRest(
  { log, secrets }: BackupSource,
  folder: string,
  { head: copied, clock }: { readonly head: Head; readonly clock: Clock },
): Promise<Omit<Manifest["files"], "log">> {
  const place = (file: BackupFile): string => join(folder, NAMES[file]);
  const binding = { log: log.id, epoch: null, place: null };
  await copySecrets(secrets.keys, sqliteSecrets(place("keys")), binding, isVisitorRef);
  await copySecrets(secrets.vault, sqliteSecrets(place("vault")), binding);
  for (const file of ["keys", "vault"] as const) await refuseOtherKey(place(file), log.master);
  const key = await log.checkpoints.loadKey();
  const loss = await findLoss(log, log.checkpoints, key);
  if (loss !== undefined) throw new ServiceError("damaged", `${loss.sentence}; no backup was made`);
  await makeNewFile(place("head"), await signHead(log, copied, key, clock));
  await makeNewFile(place("signingKey"), encryptSigningKey(key, log.master, log.id));
  return measureAll(folder, SECRET_FILES);
}

/**
 * Throws if `master` does not open the copied secrets, because the master key was rotated while the backup was made.
 */
async function refuseOtherKey(copy: string, master: Uint8Array): Promise<void> {
  try {
    await using _open = await openSecretStore({ place: sqliteSecrets(copy), master });
  } catch (fault) {
    if (!(fault instanceof KeyMismatch)) throw fault;
    throw new ServiceError("busy", "the master key was rotated during the backup: repeat the backup");
  }
}

/** The caller named in the event that records a backup, and the monitor that shows a failure to record it. */
export interface Recording {
  readonly metadata: EventMetadata;
  readonly monitor: WorkMonitor;
}

/**
 * Records in the log at `place` that a backup of it was made or rehearsed. Does nothing if another log, or another
 * history of this log, is there. A failure only causes a warning to the operator, because the backup itself is good.
 */
export async function recordBackup(
  type: "BackupMade" | "BackupRehearsed",
  { log: { id, position, hash }, made_at }: { readonly log: Manifest["log"]; readonly made_at: string },
  place: StorePlace,
  { monitor, metadata }: Recording,
): Promise<void> {
  try {
    if (!(await place.isThere())) return;
    // The log is opened without vault and keys, so that missing ones are not created.
    await using store = await place.open();
    if (store.id !== id || (await store.head()).position < position) return;
    if (position > 0 && (await eventAt(store, position)).hash !== hash) return;
    const { append } = createEventLog(store, makeId);
    await append(STREAMS.log, [{ type, data: { position, hash, made_at } }], metadata);
  } catch (fault) {
    monitor.warn(`the log could not record this: ${fault instanceof Error ? fault.message : String(fault)}`);
  }
}
