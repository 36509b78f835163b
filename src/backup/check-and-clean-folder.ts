import { readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSegment, SegmentDamaged } from "eventstore-lite/segments";
import { ServiceError } from "../platform/service-error.ts";
import type { OpenedLog } from "../privacy/open-log.ts";
import { systemCode, withPath } from "../platform/describe-system-errors.ts";
import { BEGINNING, type Increments, SECRET_FORM, SEGMENT_FORM, segmentFile, SEGMENTS } from "./increments-manifest.ts";

/**
 * Matches the names of the files at the top of a folder of incremental backups, also of those that a killed backup
 * leaves behind.
 */
const IN_FOLDER =
  /^(?:manifest\.json(?<partial>\..+\.partial)?|backup\.(?:lock(?:-journal|-wal|-shm)?|owner)|segments|secrets-(?<secrets>\d{6,}))$/;
const BELOW = new RegExp(
  String.raw`^(?:${SEGMENT_FORM}(?<partial>\..+\.partial)?|${SECRET_FORM}(?:-journal|-wal|-shm|\..+\.partial)?)$`,
);

/** Lists the paths of all files in a folder of incremental backups, relative to that folder. */
export function listFiles(folder: string): readonly string[] {
  return withPath(folder, () => readdirSync(folder)).flatMap((name) => {
    const isFolder = name === SEGMENTS || IN_FOLDER.exec(name)?.groups?.["secrets"] !== undefined;
    return isFolder ? [name, ...listBelow(join(folder, name)).map((below) => `${name}/${below}`)] : [name];
  });
}

/** Lists the names in a subfolder of the backups. Empty if another backup has just removed the subfolder. */
function listBelow(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (fault) {
    if (systemCode(fault) === "ENOENT") return [];
    throw fault;
  }
}

/** Throws a ServiceError (conflict) if a folder has a file that no backup writes; the error names the file. */
export function refuseOtherFiles(folder: string, paths: readonly string[]): void {
  const other = paths.find((path) => !(path.includes("/") ? BELOW : IN_FOLDER).test(path));
  if (other === undefined) return;
  throw new ServiceError("conflict", `${folder} holds ${other}, which belongs to no backup: name another folder`);
}

/**
 * Throws a ServiceError (conflict) if backups of another log may have left files in the folder: key files numbered
 * above the next backup or, if the folder has no manifest, segments with events that this log does not have.
 */
export async function refuseUnprovedFiles(
  log: OpenedLog,
  folder: string,
  paths: readonly string[],
  known: Increments | undefined,
): Promise<void> {
  const next = (known?.backups.length ?? 0) + 1;
  for (const path of paths) {
    const { secrets } = IN_FOLDER.exec(path)?.groups ?? {};
    const { first, partial } = BELOW.exec(path)?.groups ?? {};
    const isSegment = known === undefined && first !== undefined && partial === undefined;
    const isProved = isSegment
      ? await holdsSegment(log, join(folder, path), Number(first))
      : secrets === undefined || Number(secrets) <= next;
    if (isProved) continue;
    throw new ServiceError("conflict", `${folder} holds ${path}, but no manifest that names it: name another folder`);
  }
}

/** True if a segment file holds only events of this log. */
async function holdsSegment(log: OpenedLog, file: string, first: number): Promise<boolean> {
  const before = first === 1 ? BEGINNING.hash : await log.hashAt(first - 1);
  if (before === undefined) return false;
  try {
    const bytes = withPath(file, () => readFileSync(file));
    const { header } = openSegment(bytes, log.id, { position: first - 1, hash: before });
    return (await log.hashAt(header.last)) === header.hash;
  } catch (fault) {
    if (fault instanceof SegmentDamaged) return false;
    throw fault;
  }
}

/**
 * Removes files that interrupted backups left in the folder: partial ones, keys of backups other than the newest, and
 * segments after its last position. Earlier segments stay, even if the manifest does not name them.
 */
export function removeRemains(folder: string, paths: readonly string[], known: Increments | undefined): void {
  const named = new Set(known?.segments.map((one) => segmentFile("", one)));
  const last = known?.backups.at(-1)!.position ?? 0;
  const number = known?.backups.length ?? 0;
  const folders: string[] = [];
  for (const path of paths) {
    const { secrets, partial } = IN_FOLDER.exec(path)?.groups ?? {};
    const below = BELOW.exec(path)?.groups ?? {};
    const isPartial = partial !== undefined || below["partial"] !== undefined;
    const isBehind = below["first"] !== undefined && !named.has(path) && Number(below["first"]) > last;
    const isFormer = below["secrets"] !== undefined && Number(below["secrets"]) !== number;
    if (isPartial || isBehind || isFormer) rmSync(join(folder, path));
    if (secrets !== undefined && Number(secrets) !== number) folders.push(path);
  }
  for (const path of folders) rmdirSync(join(folder, path));
}
