import { hash } from "node:crypto";
import { ServiceError } from "../platform/service-error.ts";
import {
  type Increments,
  type SegmentEntry,
  SECRET_FORM,
  secretFile,
  SEGMENT_FORM,
  segmentFile,
} from "./increments-manifest.ts";
import { SECRET_FILES } from "./manifest.ts";

/** Kind of a backup's object in a store, parsed from its name. `tag` identifies the log of which it is a part. */
export type RemoteName =
  /**
   * Claim of backup `number`, which contains the name of the backup's manifest. It is written last, by one backup only,
   * and never removed.
   */
  | { readonly kind: "claim"; readonly number: number }
  | { readonly kind: "manifest" | "secret"; readonly number: number; readonly tag: string }
  /** Segment whose first event has the position `first`. `tag` is undefined in names that an early version wrote. */
  | { readonly kind: "segment"; readonly first: number; readonly tag: string | undefined };

/**
 * Numbers of hexadecimal digits at the end of an object's name: of the log's tag, and of the content's SHA-256.
 * Together they are as long as one SHA-256.
 */
const [TAG_DIGITS, CONTENT_DIGITS] = [16, 48];

const FORM = new RegExp(
  String.raw`^(?:manifest-(?<number>\d{6,})\.json|${SECRET_FORM}|${SEGMENT_FORM})` +
    String.raw`(?:\.(?<tag>[0-9a-f]{${TAG_DIGITS}})[0-9a-f]{${CONTENT_DIGITS}})?$`,
);

/** Parses the name of an object in a store; undefined if no backup writes such a name. */
export function parseRemoteName(name: string): RemoteName | undefined {
  const { number, secrets, first, tag } = FORM.exec(name)?.groups ?? {};
  if (first !== undefined) return { kind: "segment", first: Number(first), tag };
  if (number !== undefined && tag === undefined) return { kind: "claim", number: Number(number) };
  if (tag === undefined) return undefined;
  if (number !== undefined) return { kind: "manifest", number: Number(number), tag };
  return { kind: "secret", number: Number(secrets), tag };
}

export function claimName(number: number): string {
  return `manifest-${String(number).padStart(6, "0")}.json`;
}

/**
 * Returns the name of a file's object in the store. Files of different logs, or with different bytes, never have the
 * same name.
 */
export function hashedName(log: string, file: string, sha256: string): string {
  return `${file}.${hashLogId(log)}${sha256.slice(0, CONTENT_DIGITS)}`;
}

export function hashLogId(log: string): string {
  return hash("sha256", log).slice(0, TAG_DIGITS);
}

/** Maps the names of all objects that a manifest names to the paths of their files below the folder of backups. */
export function listObjects(increments: Increments): ReadonlyMap<string, string> {
  const { log, segments, files } = increments;
  const all = [
    ...segments.map((one: SegmentEntry) => [segmentFile("", one), one.sha256] as const),
    ...SECRET_FILES.map((name) => [secretFile("", increments, name), files[name].sha256] as const),
  ];
  return new Map(all.map(([file, sha256]) => [hashedName(log, file, sha256), file]));
}

/**
 * Throws a ServiceError (conflict) if the address holds a name that no backup writes. An empty name passes: the store's
 * console may create one for the address itself.
 */
export function refuseOtherNames(place: string, listed: readonly string[]): void {
  const other = listed.find((name) => name !== "" && parseRemoteName(name) === undefined);
  if (other === undefined) return;
  throw new ServiceError("conflict", `${place} holds ${other}, which belongs to no backup: name another address`);
}

/**
 * Throws a ServiceError (conflict) if the address holds an object that neither claims a backup number nor can come from
 * an interrupted first backup of this log. Call it only if the address holds no valid backup.
 */
export function refuseUnprovedNames(place: string, listed: readonly string[], log: string): void {
  const tag = hashLogId(log);
  const other = listed.find((text) => {
    const name = parseRemoteName(text);
    if (name === undefined || name.kind === "claim") return false;
    return name.tag !== tag || (name.kind !== "segment" && name.number !== 1);
  });
  if (other === undefined) return;
  throw new ServiceError("conflict", `${place} holds ${other}, but no manifest that names it: name another address`);
}

/**
 * True if the object may be removed: the newest manifest does not name it, and no later one will. An object without
 * this log's tag in its name counts only if it was written since the previous backup.
 */
export function isFormer(text: string, { log, backups }: Increments): boolean {
  const name = parseRemoteName(text);
  if (name === undefined || name.kind === "claim") return false;
  const [last, before] = [backups.at(-1)!.position, backups.at(-2)?.position ?? 0];
  const isOwn = name.tag === hashLogId(log);
  if (name.kind === "segment") return name.first <= last && (isOwn || name.first > before);
  return name.number === backups.length || (isOwn && name.number < backups.length);
}
