import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SegmentStorage } from "eventstore-lite";
import type { Config } from "../config/config.ts";
import { isS3Address } from "../networks/s3/address.ts";
import { ServiceError } from "../platform/service-error.ts";
import { openSegmentStorage } from "../networks/s3/segment-storage.ts";
import { listFiles } from "./backup-folder.ts";
import { withoutSlash } from "./backup-place.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import { type Increments, readIncrements } from "./increments-manifest.ts";
import { MANIFEST } from "./manifest.ts";
import { addBackup, readAll, type RemoteBackups } from "./remote-backups.ts";
import { type BackupSource, type WriteOptions } from "./write-backup.ts";
import { type Increment, readKnown, writeIncrement } from "./write-increment.ts";

/**
 * Adds a backup to those at an address, and removes nothing else there. Of two backups at once the second is refused,
 * and the first is not harmed. Throws a ServiceError (busy, conflict, damaged), or what store and storage throw.
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
    const { master, id } = source.log;
    const open = openManifest(folder, () => readKnown(folder, master));
    const { made } = await addBackup({ storage, place: withoutSlash(address), open }, id, async () => {
      const made = await writeIncrement(source, folder, options);
      const manifest = readFileSync(join(folder, MANIFEST));
      return { made, increments: readIncrements(folder, master), manifest, added: addedFiles(folder) };
    });
    return made;
  });
}

/** Puts a manifest into the folder, and reads it there. */
function openManifest(folder: string, read: () => Increments): RemoteBackups["open"] {
  return (manifest) => {
    writeFileSync(join(folder, MANIFEST), manifest);
    return read();
  };
}

/** The files of the folder except for its manifest, by their paths below it. */
function addedFiles(folder: string): ReadonlyMap<string, () => Uint8Array> {
  const paths = listFiles(folder).filter((path) => path.includes("/"));
  return new Map(paths.map((path) => [path, () => readFileSync(join(folder, path))]));
}

/**
 * Returns a copy on this machine of the backups at an address; a folder is used as it is. Messages name the address.
 */
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
  /** Calls `act` with the folder. Throws what it throws, with the place's name in the message. */
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

async function pull(storage: SegmentStorage, address: string, folder: string, master: Uint8Array): Promise<void> {
  const place = withoutSlash(address);
  const take = (path: string, bytes: Uint8Array): void => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, bytes, { mode: 0o600 });
  };
  if (await readAll({ storage, place, open: openManifest(folder, () => readIncrements(folder, master)) }, take)) return;
  throw new ServiceError("not_found", `${place} holds no backup`);
}
