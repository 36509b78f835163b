import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { OWNER_ONLY } from "../write-private-file-durably.ts";
import { malformed } from "./signed-note.ts";

/**
 * Replaces the file. At any moment, also after a crash or a power cut, it holds the old checkpoint or the new one,
 * whole.
 */
export async function writeCheckpointFile(file: string, note: string): Promise<void> {
  const partial = `${file}.${randomUUID()}.partial`;
  try {
    await writeDurably(partial, note);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  await syncDirectory(dirname(file));
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx", OWNER_ONLY);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Returns the text of a checkpoint's file; undefined if there is none. Throws {@link CheckpointRefused} if it is not
 * UTF-8.
 */
export async function readCheckpointFile(file: string): Promise<string | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed("it is not UTF-8");
  }
}
