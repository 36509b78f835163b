import { existsSync } from "node:fs";
import { ended } from "../harness/process.ts";

/** Mounting needs it, and so does attaching to another process on most machines. */
export const isRoot = process.getuid?.() === 0;

export function has(tool: string): boolean {
  return Bun.which(tool) !== null;
}

/** Debian's path (package `faketime`) for this machine's architecture. */
const LIBRARY_DIRECTORIES = ["x86_64-linux-gnu", "aarch64-linux-gnu"];

/** libfaketime for programs with threads; undefined where it is not installed. */
export const libfaketime = LIBRARY_DIRECTORIES.map((name) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`).find(
  (path) => existsSync(path),
);

/** Runs a program to its end. Throws with what it wrote to stderr when it fails. */
export async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "pipe"] });
  const { code, out, err } = await ended(child);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${err}`);
  return out;
}
