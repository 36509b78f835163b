import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { SegmentDamaged, type SegmentStorage } from "eventstore-lite";
import type { Config } from "../../config/config.ts";
import { isS3Address } from "../../networks/s3/address.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { openSegmentStorage } from "../../service/segment-storage.ts";
import { absolutePath } from "../shared/command.ts";
import { temporaryFolder } from "../shared/new-file.ts";
import {
  type Increments,
  readIncrements,
  secretFile,
  type SegmentEntry,
  segmentFile,
  SEGMENTS,
} from "./increments-manifest.ts";
import { MANIFEST, SECRET_FILES } from "./manifest.ts";
import { type BackupSource, type WriteOptions } from "./write-backup.ts";
import { type Increment, writeIncrement } from "./write-increment.ts";

/** A folder, or the address of a store. */
export function backupPlace(text: string): string {
  return isS3Address(text) ? text : absolutePath(text);
}

/**
 * Adds a backup to those at an address. No object is ever replaced: keys and vault have their hash in their name, and each
 * backup its own manifest, which is written last. Of two backups at once, the second finds the name taken. Throws a
 * ServiceError (busy, conflict, damaged), and what store and storage throw.
 */
export async function writeRemoteIncrement(
  config: Pick<Config, "objectStore">,
  source: BackupSource,
  address: string,
  options: WriteOptions,
): Promise<Increment> {
  const storage = openSegmentStorage(address, config);
  using scratch = openScratch(address);
  return await scratch.work(async (folder) => {
    const before = await storage.list();
    await pullManifest(storage, before, folder);
    const made = await writeIncrement(source, folder, options);
    const kept = await push(storage, folder, readIncrements(folder, source.log.master));
    // What is older than this backup and no part of it: former keys and manifests, and what a killed backup left.
    for (const name of before) if (!kept.has(name)) await storage.remove(name);
    return made;
  });
}

/** A copy on this machine of the backups at an address; a folder is used as it is. Messages name the address. */
export async function openIncrements(place: string, config: Config, master: Uint8Array): Promise<Scratch> {
  if (!isS3Address(place)) return { folder: place, work: (act) => act(place), [Symbol.dispose]() {} };
  const storage = openSegmentStorage(place, config);
  using opening = new DisposableStack();
  const scratch = opening.use(openScratch(place));
  await scratch.work((folder) => pull(storage, place, folder, master));
  opening.move();
  return scratch;
}

interface Scratch extends Disposable {
  readonly folder: string;
  /** Does something with the folder. Throws what `act` throws, with the place's name in its message. */
  work<Result>(act: (folder: string) => Promise<Result>): Promise<Result>;
}

function openScratch(address: string): Scratch {
  const { path: folder, [Symbol.dispose]: dispose } = temporaryFolder("reachlog-backups-");
  return {
    folder,
    async work(act) {
      try {
        return await act(folder);
      } catch (fault) {
        if (!(fault instanceof ServiceError) || !fault.message.includes(folder)) throw fault;
        throw new ServiceError(fault.kind, fault.message.replaceAll(folder, withoutSlash(address)), { cause: fault });
      }
    },
    [Symbol.dispose]: dispose,
  };
}

export function withoutSlash(address: string): string {
  return address.replace(/\/$/, "");
}

const NUMBER_DIGITS = 6;

const MANIFEST_NAME = /^manifest-\d{6,}\.json$/;

/** Writes the newest manifest into the folder. False: there is none. */
async function pullManifest(storage: SegmentStorage, names: readonly string[], folder: string): Promise<boolean> {
  const newest = names.findLast((name) => MANIFEST_NAME.test(name));
  const bytes = newest === undefined ? undefined : await storage.read(newest);
  if (bytes === undefined) return false;
  writeFileSync(join(folder, MANIFEST), bytes);
  return true;
}

async function pull(storage: SegmentStorage, address: string, folder: string, master: Uint8Array): Promise<void> {
  if (!(await pullManifest(storage, await storage.list(), folder))) {
    throw new ServiceError("not_found", `${withoutSlash(address)} holds no backup`);
  }
  const increments = readIncrements(folder, master);
  for (const [name, file] of listObjects(folder, increments)) {
    const bytes = await storage.read(name).catch((fault: unknown) => {
      // An empty file is found as altered too, and named with all others.
      if (fault instanceof SegmentDamaged) return new Uint8Array();
      throw fault;
    });
    if (bytes === undefined) continue;
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, bytes, { mode: 0o600 });
  }
}

/** The names of all objects that a manifest names, with the files that they are. */
function listObjects(folder: string, increments: Increments): ReadonlyMap<string, string> {
  const segments = increments.segments.map((one: SegmentEntry) => segmentFile(folder, one));
  const secrets = SECRET_FILES.map((name) => {
    const file = secretFile(folder, increments, name);
    return [`${relative(folder, file)}.${increments.files[name].sha256}`, file] as const;
  });
  return new Map([...segments.map((file) => [relative(folder, file), file] as const), ...secrets]);
}

/** Writes what the newest backup added. Resolves with the names of all that the backups need. */
async function push(storage: SegmentStorage, folder: string, increments: Increments): Promise<ReadonlySet<string>> {
  const objects = listObjects(folder, increments);
  const added = new Set(readdirSync(join(folder, SEGMENTS)).map((name) => join(folder, SEGMENTS, name)));
  for (const [name, file] of objects) {
    if (!name.startsWith(SEGMENTS) || added.has(file)) await storage.write(name, readFileSync(file));
  }
  const name = `manifest-${String(increments.backups.length).padStart(NUMBER_DIGITS, "0")}.json`;
  try {
    await storage.write(name, readFileSync(join(folder, MANIFEST)));
  } catch (fault) {
    if (!(fault instanceof SegmentDamaged)) throw fault;
    throw new ServiceError("busy", `another backup into ${folder} was made meanwhile: try again`, { cause: fault });
  }
  return new Set([...objects.keys(), name]);
}
