import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { logFiles, type LogFiles } from "../log/log-file-paths.ts";
import { readKnownHeads } from "../log/sign-and-compare-checkpoints.ts";
import { verifyLog } from "../log/verify-log.ts";
import { secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { Keyring } from "../privacy/keyring.ts";
import { missingKeys } from "../privacy/find-lost-keys.ts";
import { filePlace } from "../privacy/locate-log.ts";
import { openLogAt } from "../privacy/open-log.ts";
import { makeNewFile } from "../platform/new-file.ts";
import { copyUnchanged } from "./copy-backup-files-and-secrets.ts";
import { NAMES, readManifest, refuseForged, type BackupFile, type Manifest, openSigningKey } from "./manifest.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** File name of a backup's log in the scratch folder where the backup is proved. */
export const SCRATCH_LOG = "reachlog.sqlite";

export interface RehearseOptions {
  /** Empty folder in which the backup's files are placed as a restore would place them. */
  readonly scratch: string;
  readonly onProgress?: (checked: number) => void;
  /** True if the backup may lack keys of personal data. Data encrypted with a missing key then counts as erased. */
  readonly acceptLostKeys?: boolean | undefined;
}

/**
 * Proves a backup by restoring it into a scratch folder: its files are unaltered, its chain is whole up to the head
 * that the log's own key signed, and `master` opens keys for all encrypted data. Throws a ServiceError for the first
 * fault.
 */
export async function rehearse(
  folder: string,
  master: Uint8Array,
  { scratch, onProgress, acceptLostKeys = false }: RehearseOptions,
): Promise<Manifest> {
  const manifest = readManifest(folder);
  refuseForged(folder, manifest, master);
  const files = logFiles(join(scratch, SCRATCH_LOG));
  await place(folder, manifest, files, master);
  await using log = await openLogAt(filePlace(files, secret(Buffer.from(master).toString("hex"))));
  const known = await readKnownHeads(log.checkpoints, undefined, undefined);
  const { verification, compared } = await verifyLog(log, known, omitUndefined({ onProgress }));
  const { fault, head } = verification;
  const broken =
    fault === undefined
      ? compared.find((one) => one.fault !== undefined)?.fault
      : `position ${fault.position}: ${fault.reason}`;
  if (broken !== undefined) throw new ServiceError("invalid", `${folder}: ${broken}`);
  if (log.id !== manifest.log.id || head.position !== manifest.log.position || head.hash !== manifest.log.hash) {
    throw new ServiceError("invalid", `${folder}: the log is not the one that the manifest names`);
  }
  if (!acceptLostKeys) await refuseMissing(folder, log, log.keyring, manifest);
  return manifest;
}

/**
 * Throws a ServiceError (invalid) if the log of a backup names keys that the key store `place` never had. Keys that
 * were deleted are no fault.
 */
export async function refuseMissing(place: string, log: LogStore, keyring: Keyring, { made_at }: Manifest) {
  const missing = await missingKeys(log, keyring, Date.parse(made_at));
  if (missing.length === 0) return;
  throw new ServiceError(
    "invalid",
    `${place}: ${missing.length} keys that the log names are missing. Use a backup or keys that have ` +
      "them; or, to continue without, run reachlog restore --accept-lost-keys",
  );
}

/**
 * Copies a backup's files to where the log belongs; the log comes last, so a killed restore leaves no log. Existing
 * vault and keys stay. Throws a ServiceError, and leaves nothing behind, if a file is altered or its place taken.
 */
export async function place(folder: string, manifest: Manifest, files: LogFiles, master: Uint8Array): Promise<void> {
  const placed: string[] = [];
  const former = `${files.checkpoint}.former`;
  const copy = async (file: BackupFile, to: string): Promise<void> => {
    await copyUnchanged(join(folder, NAMES[file]), to, manifest.files[file]);
    placed.push(to);
  };
  try {
    for (const file of ["keys", "vault"] as const) if (!existsSync(files[file])) await copy(file, files[file]);
    const encrypted = join(folder, NAMES.signingKey);
    const pem = openSigningKey(readFileSync(encrypted), master, manifest.log.id, encrypted);
    if (!existsSync(files.signingKey) || readFileSync(files.signingKey, "utf8") !== pem) {
      await makeNewFile(files.signingKey, pem);
      placed.push(files.signingKey);
    }
    // The checkpoint of the lost log may name events that the backup lacks, so it is moved aside.
    if (existsSync(files.checkpoint)) renameSync(files.checkpoint, former);
    await copy("head", files.checkpoint);
    await copy("log", files.log);
  } catch (fault) {
    for (const file of placed) rmSync(file, { force: true });
    if (!existsSync(files.checkpoint) && existsSync(former)) renameSync(former, files.checkpoint);
    throw fault;
  }
}
