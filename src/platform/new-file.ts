import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ServiceError } from "./service-error.ts";
import { systemCode, withPath } from "./describe-system-errors.ts";

/**
 * File mode for files that commands write. Only their owner may read them, because they hold personal data or proofs.
 */
const OWNER_ONLY = 0o600;

/**
 * Makes a file that is whole or absent, durably: writes a `.partial` file next to it, and gives that file its name at
 * the end. A killed process leaves only the `.partial` file. Throws a ServiceError (conflict) if the file exists.
 */
export async function makeNewFile(
  file: string,
  /** The file's content, or a function that writes it. */
  content: string | Uint8Array | ((descriptor: number) => Promise<void> | void),
): Promise<void> {
  const folder = dirname(file);
  if (existsSync(file)) throw taken(file);
  const partial = `${file}.${randomUUID()}.partial`;
  const descriptor = withPath(existsSync(folder) ? file : folder, () => openSync(partial, "wx", OWNER_ONLY));
  try {
    await (typeof content === "function" ? content(descriptor) : writeFileSync(descriptor, content));
    fsyncSync(descriptor);
    giveName(partial, file);
  } finally {
    closeSync(descriptor);
    rmSync(partial, { force: true });
  }
  syncFolder(folder);
}

/**
 * Checks that {@link makeNewFile} can write, before work that cannot be undone. Throws a ServiceError (conflict) if the
 * file exists, and a system error with its path.
 */
export function checkNewFile(file: string): void {
  if (existsSync(file)) throw taken(file);
  const folder = dirname(file);
  withPath(folder, () => accessSync(folder, constants.W_OK));
}

/** Gives the finished file its name by a hard link, which never replaces an existing file, unlike a rename. */
function giveName(partial: string, file: string): void {
  try {
    linkSync(partial, file);
  } catch (fault) {
    if (systemCode(fault) === "EEXIST" || existsSync(file)) throw taken(file);
    // Some file systems do not support hard links, so the file is renamed.
    renameSync(partial, file);
  }
}

function taken(file: string): ServiceError {
  return new ServiceError("conflict", `${resolve(file)} exists already: nothing is overwritten`);
}

/** Creates a new folder that only this user may read. Disposing it, or the process's exit, removes it. */
export function temporaryFolder(prefix: string, parent = tmpdir()): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(parent, prefix));
  // Also removes the folder at the process's exit, because a process that must end at once disposes nothing.
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  process.on("exit", remove);
  return {
    path,
    [Symbol.dispose]() {
      process.off("exit", remove);
      remove();
    },
  };
}

/** Syncs a folder, so that the names of new files in it survive a crash of the machine. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
