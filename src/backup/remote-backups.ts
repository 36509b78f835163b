import { hash } from "node:crypto";
import { SegmentDamaged, type SegmentStorage } from "eventstore-lite/segments";
import { ServiceError } from "../platform/service-error.ts";
import type { Increments } from "./increments-manifest.ts";
import {
  claimName,
  hashedName,
  isFormer,
  listObjects,
  parseRemoteName,
  refuseOtherNames,
  refuseUnprovedNames,
} from "./remote-object-names.ts";

/**
 * Backups in an object store, whose listings may lag. A backup ends by writing its claim: a small object, named by the
 * backup's number, that makes the backup valid. Claims have no gaps and stay for ever; only one writer can claim a
 * number.
 */
export interface RemoteBackups {
  readonly storage: SegmentStorage;
  /** Address of the backups as messages to the operator show it. */
  readonly place: string;
  /** Parses a manifest. Throws unless it was authenticated with the configured master key. */
  readonly open: (manifest: Uint8Array) => Increments;
}

/** Manifest of a remote backup, parsed and as bytes. */
interface FoundManifest {
  readonly increments: Increments;
  /** Bytes of the manifest, as they are stored. */
  readonly manifest: Uint8Array;
}

/**
 * Stores the backup that `make` returns, which then is the newest one, and removes objects that are no longer needed.
 * Throws a ServiceError (busy, conflict, damaged), or what `make` and the storage throw.
 */
export async function addBackup<Made extends NewBackup>(
  remote: RemoteBackups,
  log: string,
  make: (former: FoundManifest | undefined) => Promise<Made>,
): Promise<Made> {
  const { storage, place } = remote;
  const before = await storage.list();
  refuseOtherNames(place, before);
  const former = await readNewest(remote, before);
  if (former === undefined) refuseUnprovedNames(place, before, log);
  const newest = await make(former);
  const listed = await store(remote, newest);
  await removeFormer(remote, listed, newest, former);
  return newest;
}

/**
 * Reads the newest manifest in the store; undefined if there is no backup. Throws a ServiceError (busy, damaged), or
 * what the storage throws.
 */
async function readNewest(
  { storage, place, open }: RemoteBackups,
  listed: readonly string[],
): Promise<FoundManifest | undefined> {
  let number = listed.reduce((most, name) => Math.max(most, claimedBy(name)), 0);
  let claim = number === 0 ? undefined : await storage.read(claimName(number));
  if (number > 0 && claim === undefined) throw unreadable(place, claimName(number));
  for (;;) {
    const next = await storage.read(claimName(number + 1));
    if (next !== undefined) {
      number += 1;
      claim = next;
      continue;
    }
    if (claim === undefined) return undefined;
    const name = parseClaim(place, number, claim);
    const manifest = await storage.read(name);
    if (manifest !== undefined) {
      const increments = open(manifest);
      if (increments.backups.length === number) return { increments, manifest };
      throw new ServiceError("damaged", `${place}/${name} is the manifest of backup ${increments.backups.length}`);
    }
    // A manifest is removed only after a later backup was claimed. Without such a claim, the manifest exists, but the
    // store does not show it yet.
    if ((await storage.read(claimName(number + 1))) === undefined) throw unreadable(place, name);
  }
}

function claimedBy(text: string): number {
  const name = parseRemoteName(text);
  return name?.kind === "claim" ? name.number : 0;
}

function unreadable(place: string, name: string): ServiceError {
  return new ServiceError("busy", `${place}/${name} is listed and cannot be read: try again later`);
}

/** Returns the name of the manifest that a backup's claim contains. */
function parseClaim(place: string, number: number, claim: Uint8Array): string {
  const name = Buffer.from(claim).toString("utf8").trim();
  if (parseRemoteName(name)?.kind === "manifest") return name;
  throw new ServiceError(
    "damaged",
    `${place}/${claimName(number)} names no manifest: it was altered, or an earlier version wrote it`,
  );
}

export interface NewBackup extends FoundManifest {
  /** Files that the backup adds to the store, by their paths below the folder of backups. */
  readonly added: ReadonlyMap<string, () => Uint8Array>;
}

/**
 * Writes a backup to the store. Its claim is written last, once all objects that the backup names exist, and makes it
 * valid. Resolves with the names in the store's listing.
 */
async function store({ storage, place }: RemoteBackups, { increments, manifest, added }: NewBackup) {
  const number = increments.backups.length;
  const objects = listObjects(increments);
  for (const [name, file] of objects) {
    const bytes = added.get(file);
    if (bytes !== undefined) await writeWhole(storage, name, bytes());
  }
  const name = manifestName({ increments, manifest });
  await writeWhole(storage, name, manifest);
  const listed = await storage.list();
  const there = new Set(listed);
  for (const [object, file] of [...objects, [name, ""] as const]) {
    if (there.has(object) || (await storage.read(object)) !== undefined) continue;
    if (file === "" || added.has(file)) throw overtaken(place);
    throw new ServiceError("damaged", `${place}/${file} is missing, which earlier backups need: name another address`);
  }
  try {
    await storage.write(claimName(number), Buffer.from(`${name}\n`));
  } catch (fault) {
    if (!(fault instanceof SegmentDamaged)) throw fault;
    throw overtaken(place, fault);
  }
  return listed;
}

function overtaken(place: string, cause?: unknown): ServiceError {
  return new ServiceError("busy", `another backup into ${place} was made at the same time: try again`, { cause });
}

/**
 * Writes an object to the store. If a damaged object has that name, an interrupted backup left it and no manifest names
 * it, so it is replaced.
 */
async function writeWhole(storage: RemoteBackups["storage"], name: string, bytes: Uint8Array): Promise<void> {
  try {
    await storage.write(name, bytes);
  } catch (fault) {
    if (!(fault instanceof SegmentDamaged)) throw fault;
    await storage.remove(name);
    await storage.write(name, bytes);
  }
}

/**
 * Removes the objects that backups no longer need once `newest` is valid: keys and manifest of the backup before it
 * (`former`), even if the listing still lacks them, and objects of interrupted backups.
 */
async function removeFormer(
  { storage }: RemoteBackups,
  listed: readonly string[],
  newest: FoundManifest,
  former: FoundManifest | undefined,
): Promise<void> {
  const keep = new Set(listNames(newest));
  for (const name of new Set([...listed, ...(former === undefined ? [] : listNames(former))])) {
    if (!keep.has(name) && isFormer(name, newest.increments)) await storage.remove(name);
  }
}

function listNames(found: FoundManifest): string[] {
  return [...listObjects(found.increments).keys(), manifestName(found)];
}

function manifestName({ increments: { log, backups }, manifest }: FoundManifest): string {
  return hashedName(log, claimName(backups.length), hash("sha256", manifest));
}

/**
 * Maximum number of attempts to read all files of remote backups. If a backup made meanwhile removes some, they are
 * read again.
 */
const READS_MAX = 5;

/**
 * Reads all files of the newest remote backup and passes each to `take` with its path; a damaged one has no bytes.
 * Starts over if another backup removed files meanwhile. Resolves with false if there is no backup.
 */
export async function readAll(
  remote: RemoteBackups,
  take: (file: string, bytes: Uint8Array) => void,
): Promise<boolean> {
  const { storage, place } = remote;
  const taken = new Set<string>();
  for (let read = 1; read <= READS_MAX; read++) {
    const newest = await readNewest(remote, await storage.list());
    if (newest === undefined) return false;
    let isWhole = true;
    for (const [name, file] of listObjects(newest.increments)) {
      if (taken.has(name)) continue;
      const bytes = await readObject(storage, name);
      if (bytes === undefined) {
        isWhole = false;
        continue;
      }
      take(file, bytes);
      taken.add(name);
    }
    const next = claimName(newest.increments.backups.length + 1);
    if (isWhole || (await storage.read(next)) === undefined) return true;
  }
  throw new ServiceError("busy", `backups into ${place} are made faster than they are read: try again later`);
}

/**
 * Reads an object of a backup. A damaged one counts as empty, so that the later check of hashes reports it along with
 * all other faults.
 */
async function readObject(storage: RemoteBackups["storage"], name: string): Promise<Uint8Array | undefined> {
  try {
    return await storage.read(name);
  } catch (fault) {
    if (fault instanceof SegmentDamaged) return new Uint8Array();
    throw fault;
  }
}
