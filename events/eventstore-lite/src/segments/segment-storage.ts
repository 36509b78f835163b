import { mkdirSync, readdirSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { SegmentDamaged } from "../errors.ts";
import { makePrivateFile, PARTIAL_SUFFIX } from "../write-private-file-durably.ts";

/** Reads the files of sealed segments by their names. */
export interface SegmentReader {
  /** Returns the content of a segment's file; undefined if there is no such file. */
  read(name: string): Promise<Uint8Array | undefined>;
}

/** Where sealed segments are kept: a folder, or another place that keeps named files durably. */
export interface SegmentStorage extends SegmentReader {
  /** Returns the names of all segment files, in order. */
  list(): Promise<readonly string[]>;
  /**
   * Writes a segment's file; resolves once it is durable. Has no effect if the file exists with the same bytes; throws
   * {@link SegmentDamaged} if it exists with others.
   */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Removes a segment's file; has no effect if there is none of that name. */
  remove(name: string): Promise<void>;
}

/** Keeps each file in `folder`, which is created with the first one. A file appears whole, fsynced, mode 0600. */
export function createSegmentFolder(folder: string): SegmentStorage {
  const read = async (name: string): Promise<Uint8Array | undefined> => {
    try {
      return await readFile(join(folder, name));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  };
  return {
    async list() {
      try {
        return readdirSync(folder)
          .filter((name) => !name.endsWith(PARTIAL_SUFFIX))
          .toSorted();
      } catch (error) {
        if (isMissing(error)) return [];
        throw error;
      }
    },
    read,
    async write(name, bytes) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if ((await read(name)) === undefined) makePrivateFile(join(folder, name), bytes);
      const kept = await read(name);
      if (kept === undefined || Buffer.compare(kept, bytes) !== 0) {
        throw new SegmentDamaged(`${name} is there with other bytes: move it away`);
      }
    },
    remove: (name) => rm(join(folder, name), { force: true }),
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** The storage of a log that was opened without a place for segments. */
export const NO_SEGMENTS: SegmentStorage = {
  list: async () => [],
  read: async () => undefined,
  write: async () => {
    throw new SegmentDamaged("the log was opened without a place for its segments");
  },
  remove: async () => {},
};
