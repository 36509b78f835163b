import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Config } from "../../config/config.ts";
import { shownLog, type PostgresLog } from "../../config/log.ts";
import { signHead } from "../../log/checkpoint.ts";
import { refuseServed } from "../../log/instances.ts";
import { logFiles, type LogFiles } from "../../log/log-files.ts";
import { restoreToServer } from "../../log/store-place.ts";
import { verifyLog } from "../../log/verify-log.ts";
import { systemClock } from "../../platform/clock.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { missingKeys } from "../../privacy/missing-keys.ts";
import { filesOf, logPlaceOf } from "../../service/log-place.ts";
import { openLogAt } from "../../service/open.ts";
import { sqliteSecrets } from "../../vault/sqlite-secrets.ts";
import type { Terminal } from "../command.ts";
import { startProgress } from "../progress.ts";
import { copySecrets } from "./copy-file.ts";
import { readManifest, type Manifest } from "./manifest.ts";
import { place, rehearse } from "./rehearse.ts";

/**
 * Throws a ServiceError (conflict) where a configuration's log is to be and anything is: it would be taken for the log's;
 * (busy) where a service has an empty log there, under which it would be replaced.
 */
export async function refuseTaken(config: Config): Promise<void> {
  if (config.log.kind === "sqlite") return refuseExisting(filesOf(config.log));
  const { store } = logPlaceOf(config);
  if (!(await store.isThere())) return;
  await using log = await store.open();
  const { position } = await log.head();
  if (position === 0) return await refuseServed(log);
  throw new ServiceError("conflict", `nothing is overwritten: the log in ${store.name} holds ${position} events`);
}

function refuseExisting({ log, vault, keys, checkpoint, signingKey }: LogFiles): void {
  const places = [log, `${log}-wal`, `${log}-shm`, vault, keys, checkpoint, signingKey];
  const taken = places.filter((file) => existsSync(file));
  if (taken.length === 0) return;
  throw new ServiceError("conflict", `nothing is overwritten: move ${taken.join(", ")} away first`);
}

export interface PutBackOptions {
  readonly master: Uint8Array;
  /** Only prove it. */
  readonly isRehearsal?: boolean;
  /** Asked once the backup is proved: what it throws leaves everything as it was. */
  readonly beforePlacing?: () => Promise<void>;
}

/**
 * Proves a backup in a scratch folder, and then puts it where the configuration has its log. What was put on a server is
 * proved there once more. Throws a ServiceError; then no log is there.
 */
export async function putBack(
  terminal: Terminal,
  folder: string,
  config: Config,
  { master, isRehearsal = false, beforePlacing }: PutBackOptions,
): Promise<Manifest> {
  const { log } = config;
  const isFile = log.kind === "sqlite" && !isRehearsal;
  if (isFile) for (const file of [log.file, filesOf(log).keys]) mkdirSync(dirname(file), { recursive: true });
  const scratch = mkdtempSync(join(isFile ? dirname(log.file) : tmpdir(), "reachlog-rehearsal-"));
  try {
    const manifest = await showing(terminal, "verifying", readManifest(folder), (onProgress) =>
      rehearse(folder, master, { scratch, onProgress }),
    );
    if (isRehearsal) return manifest;
    await beforePlacing?.();
    if (log.kind === "sqlite") await place(folder, manifest, filesOf(log), master);
    else await placeOnServer(terminal, config, log, scratch, manifest);
    return manifest;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The log last, since where a log is everything is; it appears as a whole. */
async function placeOnServer(
  terminal: Terminal,
  config: Config,
  log: PostgresLog,
  scratch: string,
  manifest: Manifest,
): Promise<void> {
  // A service may have started while the backup was proved.
  await refuseTaken(config);
  const { secrets } = logPlaceOf(config);
  const files = logFiles(join(scratch, "reachlog.sqlite"));
  await copySecrets(sqliteSecrets(files.keys), secrets.keys);
  await copySecrets(sqliteSecrets(files.vault), secrets.vault);
  await showing(terminal, "copying", manifest, (onProgress) =>
    restoreToServer(log, files.log, (copied) => {
      if (terminal.signal.aborted) throw new ServiceError("busy", `interrupted: no log is in ${log.shown}`);
      onProgress(copied);
    }),
  );
  await showing(terminal, "verifying", manifest, (onProgress) => proveOnServer(config, manifest, onProgress));
}

/** And signs its head: a server's log has a signing key of its own, of the vault. */
async function proveOnServer(config: Config, manifest: Manifest, onProgress: (checked: number) => void): Promise<void> {
  await using log = await openLogAt(logPlaceOf(config));
  const { verification } = await verifyLog(log, [], { onProgress });
  const { head, fault } = verification;
  const missing = await missingKeys(log, log.keyring, Date.parse(manifest.made_at));
  const { position, hash } = manifest.log;
  if (fault !== undefined || head.position !== position || head.hash !== hash || missing.length > 0) {
    throw new ServiceError("damaged", `${shownLog(config.log)} did not keep what was put there: do not use it`);
  }
  await log.checkpoints.write(await signHead(log, head, await log.checkpoints.loadKey(), systemClock));
}

/** Shows how far a work on all events of a backup is. */
async function showing<Result>(
  terminal: Terminal,
  what: string,
  { log }: Manifest,
  work: (onProgress: (done: number) => void) => Promise<Result>,
): Promise<Result> {
  const progress = startProgress(terminal, what, log.position);
  try {
    return await work(progress.update);
  } finally {
    progress.end();
  }
}
