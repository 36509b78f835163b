import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { type Head, openSegment, type OpenedSegment } from "eventstore-lite";
import { ServiceError } from "../platform/service-error.ts";
import { withPath } from "../platform/system-fault.ts";
import { refuseAltered } from "./copy-file.ts";
import { copied, decodeManifest, MANIFEST, NAMES, refuseForged, SECRET_FILES } from "./manifest.ts";

/** Subfolder for the sealed segments of incremental backups; each segment is written once. */
export const SEGMENTS = "segments";

/** Subfolder for keys, vault, head and signing key of the newest backup, which open all earlier ones too. */
export function secretsFolder(number: number): string {
  return `secrets-${String(number).padStart(6, "0")}`;
}

const position = Type.Integer({ minimum: 0 });
const backup = Type.Object({
  /** When it was made, ISO 8601. */
  made_at: Type.String(),
  position,
  hash: Type.String(),
});

const incrementsSchema = Type.Object({
  format: Type.Literal(2),
  /** Version of the program that made the newest backup. */
  version: Type.String(),
  log: Type.String(),
  /** All continuations of the log, oldest first. */
  epochs: Type.Array(
    Type.Object({
      id: Type.String(),
      after: position,
      begunAs: Type.Union((["new", "backup", "import", "copy", "operator"] as const).map((how) => Type.Literal(how))),
    }),
  ),
  master_key: Type.String(),
  /** In the order of their positions, without a gap. `hash`: the chain's hash after the last event. */
  segments: Type.Array(Type.Composite([Type.Object({ first: position, last: position, hash: Type.String() }), copied])),
  /** The first entry is backup number 1. */
  backups: Type.Array(backup, { minItems: 1 }),
  files: Type.Object({ vault: copied, keys: copied, head: copied, signingKey: copied }),
  mac: Type.String(),
});

/**
 * Describes a folder of incremental backups. Each backup replaces it last, atomically; files that it does not name are
 * no part of the backups.
 */
export type Increments = Static<typeof incrementsSchema>;

export type SegmentEntry = Increments["segments"][number];

/** Digits of the largest position that a number holds, so that names are in the order of positions. */
const DIGITS = 16;

/** The forms of the files' paths below the folder, as parts of a regular expression. */
export const SEGMENT_FORM = String.raw`segments/(?<first>\d{${DIGITS}})-\d{${DIGITS}}\.zst`;
export const SECRET_FORM = String.raw`secrets-(?<secrets>\d{6,})/(?:${SECRET_FILES.map((name) => NAMES[name].replaceAll(".", "\\.")).join("|")})`;

export function segmentFile(folder: string, { first, last }: Pick<SegmentEntry, "first" | "last">): string {
  const [from, to] = [first, last].map((at) => String(at).padStart(DIGITS, "0"));
  return join(folder, SEGMENTS, `${from}-${to}.zst`);
}

export function secretFile(folder: string, { backups }: Increments, file: (typeof SECRET_FILES)[number]): string {
  return join(folder, secretsFolder(backups.length), NAMES[file]);
}

/** True if a folder holds incremental backups; false also if it does not exist. */
export function isIncremental(folder: string): boolean {
  try {
    return (JSON.parse(readFileSync(join(folder, MANIFEST), "utf8")) as { readonly format?: unknown }).format === 2;
  } catch {
    return false;
  }
}

/**
 * Throws a ServiceError (configuration, invalid) unless a holder of this master key wrote the manifest, or the system's
 * error.
 */
export function readIncrements(folder: string, master: Uint8Array): Increments {
  const increments = decodeManifest(folder, incrementsSchema);
  refuseForged(folder, increments, master);
  return increments;
}

/** Reads one segment and proves it. Throws a ServiceError (invalid) that names the file. */
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

type ChainEnd = Pick<Head, "position" | "hash">;

/** The position and the hash of a log before its first event. */
export const BEGINNING: ChainEnd = { position: 0, hash: "00".repeat(32) };
