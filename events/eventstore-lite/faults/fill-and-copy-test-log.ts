import type { EventStore } from "eventstore-lite";
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./required-tools.ts";

/** The files of a log: the database, its write-ahead log and the index of the write-ahead log. */
const SUFFIXES = ["", "-wal", "-shm"];

/**
 * Number of streams in the test log: enough for several pages in the index by stream, which are not all written at the
 * same time.
 */
const STREAMS = 600;
const TYPES = 20;

/** Number of callers that append at once; their appends share a transaction. */
const CALLERS = 25;

/** Appends single events to random streams, with `chars` characters of data each. */
export async function appendAnywhere(store: EventStore, count: number, chars: number): Promise<void> {
  const text = "x".repeat(chars);
  const append = () => {
    const type = `Type${Math.floor(Math.random() * TYPES)}`;
    const event = { id: crypto.randomUUID(), type, data: { text }, meta: {} };
    return store.append(`stream${Math.floor(Math.random() * STREAMS)}`, [event]);
  };
  for (let done = 0; done < count; done += CALLERS) {
    await Promise.all(Array.from({ length: Math.min(CALLERS, count - done) }, append));
  }
}

/**
 * Copies the files of a log as they are on disk now, as if its process had been killed. Another process copies them:
 * opening the files here would drop the locks of a store that is open here. Returns the image's path.
 */
export function imageOf(file: string, name: string): string {
  const image = newImagePath(file, name);
  for (const suffix of SUFFIXES) if (existsSync(file + suffix)) run("cp", file + suffix, image + suffix);
  return image;
}

/** Copies an image in order to damage it, and removes the previous copy. Returns the copy's path. */
export function copyOf(image: string): string {
  const copy = newImagePath(image, "copy");
  for (const suffix of SUFFIXES) if (existsSync(image + suffix)) copyFileSync(image + suffix, copy + suffix);
  return copy;
}

function newImagePath(file: string, name: string): string {
  const directory = join(dirname(file), name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  return join(directory, "log.sqlite");
}
