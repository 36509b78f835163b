import { writeSync } from "node:fs";

/** Pause before a full pipe is tried again. */
const FULL_PIPE_WAIT_MS = 5;

/**
 * Writes all of `text`, waiting for a slow reader: an exit right after it loses nothing, and an export of any length
 * needs no memory. A reader that left (`| head`) ends the process quietly.
 */
export function writeAll(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (fault) {
      const { code } = fault as NodeJS.ErrnoException;
      if (code === "EPIPE") process.exit(0);
      if (code !== "EAGAIN") throw fault;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_WAIT_MS);
    }
  }
}
