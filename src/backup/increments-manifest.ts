import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { openSegment, type OpenedSegment } from "eventstore-lite/segments";
import { ServiceError } from "../platform/service-error.ts";
import { withPath } from "../platform/describe-system-errors.ts";
import { refuseAltered } from "./copy-backup-files-and-secrets.ts";
import { copied, decodeManifest, MANIFEST, NAMES, refuseForged, SECRET_FILES } from "./manifest.ts";

/** Name of the subfolder for the sealed segments of incremental backups; each segment is written once. */
export const SEGMENTS = "segments";

/**
 * Returns the subfolder for the keys, vault, signed head and signing key of backup `number`. Those of the newest backup
 * also open all earlier ones.
 */
export function secretsFolder(number: number): string {
  return `secrets-${String(number).padStart(6, "0")}`;
}

const position = Type.Integer({ minimum: 0 });
const backup = Type.Object({
  /** Time of one incremental backup, ISO 8601. */
  made_at: Type.String(),
  position,
  hash: Type.String(),
});

const incrementsSchema = Type.Object({
  format: Type.Literal(2),
  /** Version of reachlog that made the newest backup in the folder. */
  version: Type.String(),
  log: Type.String(),
  /**
   * Epochs of the backed-up log, oldest first: one begins when it is created, and with each restore, import or copy.
   */
  epochs: Type.Array(
    Type.Object({
      id: Type.String(),
      after: position,
      begunAs: Type.Union((["new", "backup", "import", "copy", "operator"] as const).map((how) => Type.Literal(how))),
    }),
  ),
  master_key: Type.String(),
  /**
   * Sealed segments of the log, in the order of their positions, without a gap. `hash`: the chain's hash after a
   * segment's last event.
   */
  segments: Type.Array(Type.Composite([Type.Object({ first: position, last: position, hash: Type.String() }), copied])),
  /** Incremental backups in the folder; the first entry is backup number 1. */
  backups: Type.Array(backup, { minItems: 1 }),
  files: Type.Object({ vault: copied, keys: copied, head: copied, signingKey: copied }),
  mac: Type.String(),
});

/**
 * Manifest of a folder of incremental backups. Each backup ends by replacing it atomically; files that it does not name
 * belong to no backup.
 */
export type Increments = Static<typeof incrementsSchema>;

export type SegmentEntry = Increments["segments"][number];

/**
 * Number of digits of a position in the name of a segment's file: enough for the largest one, so that names sort by
 * position.
 */
const DIGITS = 16;

/** Regular expressions of the paths of segments and of secrets, relative to a folder of incremental backups. */
export const SEGMENT_FORM = String.raw`segments/(?<first>\d{${DIGITS}})-\d{${DIGITS}}\.zst`;
export const SECRET_FORM = String.raw`secrets-(?<secrets>\d{6,})/(?:${SECRET_FILES.map((name) => NAMES[name].replaceAll(".", "\\.")).join("|")})`;

export function segmentFile(
  folder: string,
  { first, last }: { readonly first: number; readonly last: number },
): string {
  const [from, to] = [first, last].map((at) => String(at).padStart(DIGITS, "0"));
  return join(folder, SEGMENTS, `${from}-${to}.zst`);
}

export function secretFile(folder: string, { backups }: Increments, file: (typeof SECRET_FILES)[number]): string {
  return join(folder, secretsFolder(backups.length), NAMES[file]);
}

/** True if a folder holds incremental backups; false if it holds other files or does not exist. */
export function isIncremental(folder: string): boolean {
  try {
    return (JSON.parse(readFileSync(join(folder, MANIFEST), "utf8")) as { readonly format?: unknown }).format === 2;
  } catch {
    return false;
  }
}

/**
 * Reads the manifest of incremental backups. Throws a ServiceError (configuration, invalid) unless a holder of this
 * master key wrote it, or the system's error.
 */
export function readIncrements(folder: string, master: Uint8Array): Increments {
  const increments = decodeManifest(folder, incrementsSchema);
  refuseForged(folder, increments, master);
  return increments;
}

/** Reads one segment of incremental backups and proves it. Throws a ServiceError (invalid) that names the file. */
export function readSegment(folder: string, log: string, segment: SegmentEntry, after: ChainEnd): OpenedSegment {
  const file = segmentFile(folder, segment);
  refuseAltered(file, segment);
  const bytes = withPath(file, () => readFileSync(file));
  try {
    const opened = openSegment(bytes, log, after);
    if (opened.header.last === segment.last && opened.header.hash === segment.hash) return opened;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError("invalid", `${file}: ${reason}`, { cause });
  }
  throw new ServiceError("invalid", `${file} does not end where the backup's manifest says`);
}

interface ChainEnd {
  readonly position: number;
  readonly hash: string;
}

/** End of the hash chain of a log without events: position 0 and a hash of zeros. */
export const BEGINNING: ChainEnd = { position: 0, hash: "00".repeat(32) };
