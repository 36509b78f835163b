import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { Config } from "../config/config.ts";
import { isS3Address, parseS3Address } from "../networks/s3/parse-address.ts";
import { logFiles } from "../log/log-file-paths.ts";
import { ServiceError } from "../platform/service-error.ts";
import { SEGMENTS } from "./increments-manifest.ts";

/** Parses where backups are kept: a folder, or the address of an S3-compatible store. */
export function parseBackupPlace(text: string): string {
  return isS3Address(text) ? text : resolve(text);
}

export function withoutSlash(address: string): string {
  return address.replace(/\/$/, "");
}

/**
 * Throws a ServiceError (conflict) if backups and archived segments would be in the same place, even if nothing is
 * archived yet: each would take the other's files for its own.
 */
export function refuseArchive(place: string, { log }: { readonly log: Config["log"] }): void {
  const archive = log.archive ?? (log.kind === "sqlite" ? logFiles(log.file).segments : undefined);
  if (archive === undefined || !overlap(place, archive)) return;
  throw new ServiceError(
    "conflict",
    `${place} and ARCHIVE_FOLDER, ${archive}, overlap: the segments there are part of the log. Name another place for backups`,
  );
}

function overlap(place: string, archive: string): boolean {
  const [ofBackups, ofArchive] = [parseS3Address(place), parseS3Address(archive)];
  if (ofBackups !== undefined && ofArchive !== undefined) {
    return ofBackups.bucket === ofArchive.bucket && isEitherIn(ofBackups.prefix, ofArchive.prefix);
  }
  if (ofBackups !== undefined || ofArchive !== undefined) return false;
  const folder = withSeparator(resolveLinks(archive));
  // Checks the subfolder for segments too, because it may be a symbolic link to another disk.
  return [place, join(place, SEGMENTS)].some((one) => isEitherIn(withSeparator(resolveLinks(one)), folder));
}

function withSeparator(path: string): string {
  return path.endsWith(sep) ? path : path + sep;
}

/**
 * True if one of two places lies within the other, or both are the same. Each argument ends with a slash, or is empty.
 */
function isEitherIn(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Resolves the symbolic links in a path, even if its last folders do not exist yet. */
function resolveLinks(path: string): string {
  return existsSync(path) || path === dirname(path)
    ? realpathSync(path)
    : join(resolveLinks(dirname(path)), basename(path));
}
