import { existsSync } from "node:fs";
import { ended } from "../harness/process.ts";

/**
 * True if this process runs as root. Mounting needs root, and so does attaching to another process on most machines.
 */
export const isRoot = process.getuid?.() === 0;

export function has(tool: string): boolean {
  return Bun.which(tool) !== null;
}

/** Debian's library folders (package `faketime`) by architecture. */
const LIBRARY_DIRECTORIES = ["x86_64-linux-gnu", "aarch64-linux-gnu"];

/** libfaketime for multi-threaded programs; undefined if it is not installed. */
export const libfaketime = LIBRARY_DIRECTORIES.map((name) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`).find(
  (path) => existsSync(path),
);

/** Runs a program until it exits. Throws with its stderr if it fails. */
export async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "pipe"] });
  const { code, out, err } = await ended(child);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${err}`);
  return out;
}
