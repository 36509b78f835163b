import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { isStoreError } from "eventstore-lite";
import { replacePrivateFile, sealSegments, takeOwnership } from "eventstore-lite/segments";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";
import { VERSION } from "../platform/version.ts";
import type { OpenedLog } from "../privacy/open-log.ts";
import { keyId, KeyMismatch } from "../vault/derive-keys.ts";
import { syncFolder, makeNewFile } from "../platform/new-file.ts";
import { withPath } from "../platform/describe-system-errors.ts";
import { listFiles, refuseOtherFiles, refuseUnprovedFiles, removeRemains } from "./check-and-clean-folder.ts";
import { measure } from "./copy-backup-files-and-secrets.ts";
import {
  BEGINNING,
  type Increments,
  readIncrements,
  type SegmentEntry,
  secretsFolder,
  segmentFile,
  SEGMENTS,
} from "./increments-manifest.ts";
import { MANIFEST, signManifest } from "./manifest.ts";
import { copyRest, type WriteOptions, type BackupSource } from "./write-backup.ts";

export interface Increment {
  readonly log: { readonly id: string; readonly position: number; readonly hash: string };
  readonly made_at: string;
  /** Number of the incremental backup, from 1; undefined for a whole backup. */
  readonly number: number | undefined;
  /** Position of the first event in this backup, which is in no earlier one. */
  readonly first: number;
  /** Number of bytes that this backup wrote. */
  readonly bytes: number;
}

/**
 * Adds the events since the last backup to its folder, while instances use the log. The manifest is replaced last: a
 * killed backup changes nothing, the next one cleans up. Throws a ServiceError (busy, conflict, damaged) or the store's
 * error.
 */
export async function writeIncrement(source: BackupSource, folder: string, options: WriteOptions): Promise<Increment> {
  if (existsSync(folder)) refuseOtherFiles(folder, listFiles(folder));
  makeFolder(folder);
  const release = takeFolder(folder, options.clock());
  try {
    return await add(source, folder, options);
  } finally {
    release();
  }
}

function makeFolder(folder: string): void {
  const made = withPath(folder, () => mkdirSync(folder, { recursive: true, mode: 0o700 }));
  if (made !== undefined) syncFolder(dirname(made));
}

function takeFolder(folder: string, nowMs: number): () => void {
  try {
    return takeOwnership(join(folder, "backup"), "reachlog backup", nowMs);
  } catch (fault) {
    if (!isStoreError(fault, "owned")) throw fault;
    throw new ServiceError("busy", `another backup into ${folder} is in progress: try again later`, { cause: fault });
  }
}

async function add(source: BackupSource, folder: string, { clock, onProgress }: WriteOptions): Promise<Increment> {
  const { log } = source;
  const paths = listFiles(folder);
  refuseOtherFiles(folder, paths);
  const known = paths.includes(MANIFEST) ? readKnown(folder, log.master) : undefined;
  const last = known?.backups.at(-1) ?? BEGINNING;
  if (known !== undefined) await refuseOtherHistory(log, folder, known);
  await refuseUnprovedFiles(log, folder, paths, known);
  removeRemains(folder, paths, known);
  makeFolder(join(folder, SEGMENTS));
  // The keys are copied after the log: each key exists before data is encrypted with it, so none is missing.
  const head = await log.head();
  const sealed: SegmentEntry[] = [];
  for await (const { header, bytes } of sealSegments(log, last, head.position)) {
    const file = segmentFile(folder, header);
    await makeNewFile(file, bytes);
    sealed.push({ first: header.first, last: header.last, hash: header.hash, ...measure(file) });
    onProgress?.(header.last - last.position);
  }
  const number = (known?.backups.length ?? 0) + 1;
  const place = join(folder, secretsFolder(number));
  mkdirSync(place, { mode: 0o700 });
  const files = await copyRest(source, place, { head, clock });
  syncFolder(folder);
  const made_at = isoTime(clock());
  const { position, hash } = head;
  const unsigned = {
    format: 2 as const,
    version: VERSION,
    log: log.id,
    epochs: log.history.map(({ id, after, begunAs }) => ({ id, after, begunAs })),
    master_key: keyId(log.master),
    segments: [...(known?.segments ?? []), ...sealed],
    backups: [...(known?.backups ?? []), { made_at, position, hash }],
    files,
  } satisfies Omit<Increments, "mac">;
  const manifest = `${JSON.stringify(signManifest<Increments>(unsigned, log.master))}\n`;
  replacePrivateFile(join(folder, MANIFEST), manifest);
  removeRemains(folder, listFiles(folder), { ...unsigned, mac: "" });
  const bytes = [...sealed, ...Object.values(files)].reduce((sum, file) => sum + file.bytes, manifest.length);
  return { log: { id: log.id, position, hash }, made_at, number, first: last.position + 1, bytes };
}

/**
 * Reads the present manifest, which the backup in progress will replace. Throws a ServiceError (conflict) if the
 * backups have another master key, and what {@link readIncrements} throws.
 */
export function readKnown(folder: string, master: Uint8Array): Increments {
  try {
    return readIncrements(folder, master);
  } catch (cause) {
    if (!(cause instanceof KeyMismatch)) throw cause;
    const remedy = "after a key rotation, name another folder";
    throw new ServiceError("conflict", `${folder} holds backups of another master key: ${remedy}`, { cause });
  }
}

/**
 * Throws a ServiceError (conflict) if the backups in the folder are of another log, or hold events that this log no
 * longer has.
 */
async function refuseOtherHistory(log: OpenedLog, folder: string, { log: id, backups }: Increments): Promise<void> {
  const refuse = (what: string): never => {
    throw new ServiceError("conflict", `${what}. Nothing was written: restore the folder, or name another one`);
  };
  if (id !== log.id) refuse(`${folder} holds backups of the log ${id}, and this is the log ${log.id}`);
  const { position, hash } = backups.at(-1)!;
  const found = await log.hashAt(position);
  if (found === undefined) {
    const { position: end } = await log.head();
    refuse(`${folder} reaches position ${position}, but the log ends at ${end}: the log was rolled back`);
  }
  if (found !== hash)
    refuse(`the log holds another event at position ${position} than ${folder}: the log was rolled back`);
}
