import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SegmentStorage } from "eventstore-lite/segments";
import type { Config } from "../config/config.ts";
import { isS3Address } from "../networks/s3/parse-address.ts";
import { ServiceError } from "../platform/service-error.ts";
import { openSegmentStorage } from "../networks/s3/open-segment-storage.ts";
import { listFiles } from "./check-and-clean-folder.ts";
import { withoutSlash } from "./parse-backup-place.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import { type Increments, readIncrements } from "./increments-manifest.ts";
import { MANIFEST } from "./manifest.ts";
import { addBackup, readAll, type RemoteBackups } from "./remote-backups.ts";
import { type BackupSource, type WriteOptions } from "./write-backup.ts";
import { type Increment, readKnown, writeIncrement } from "./write-increment.ts";

/**
 * Adds an incremental backup to those at a store's address. If two are made at the same time, one is refused and the
 * other is unharmed. Throws a ServiceError (busy, conflict, damaged), or the store's error.
 */
export async function writeRemoteIncrement(
  config: Config,
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

/**
 * Returns a function that parses a remote manifest: it writes the manifest into a local folder, where `read` reads it.
 */
function openManifest(folder: string, read: () => Increments): RemoteBackups["open"] {
  return (manifest) => {
    writeFileSync(join(folder, MANIFEST), manifest);
    return read();
  };
}

/** Returns the files that a backup wrote into a local folder, except its manifest, by their paths below the folder. */
function addedFiles(folder: string): ReadonlyMap<string, () => Uint8Array> {
  const paths = listFiles(folder).filter((path) => path.includes("/"));
  return new Map(paths.map((path) => [path, () => readFileSync(join(folder, path))]));
}

/**
 * Copies the backups at an address into a local folder; a local folder of backups is used as it is. Error messages name
 * the address.
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
  /**
   * Calls `act` with the local folder of backups. If it throws, the error is thrown again with the backups' address in
   * its message.
   */
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
