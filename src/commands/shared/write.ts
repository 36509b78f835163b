import { writeSync } from "node:fs";
import { styleText } from "node:util";
import { escapeControls } from "../../platform/escape-controls.ts";
import { makeNewFile } from "../../platform/new-file.ts";
import { fail, printable, type Style, type Terminal } from "./terminal.ts";

/** What a shell answers for a process that SIGPIPE ended: 128 and the signal's number. */
const EXIT_CLOSED_PIPE = 141;

/** Pause before a full pipe is tried again. */
const FULL_PIPE_WAIT_MS = 5;

/**
 * Writes text of which parts may be others' words: nothing in it can steer a terminal. `style` shows on terminals only,
 * unless NO_COLOR or FORCE_COLOR says otherwise.
 */
export function writeText(descriptor: number, text: string, style?: Style): void {
  const harmless = escapeControls(text);
  const stream = descriptor === 2 ? process.stderr : process.stdout;
  writeAll(descriptor, style === undefined ? harmless : styleText(style, harmless, { stream }));
}

/**
 * Writes all of `text`, waiting for a slow reader: an exit right after it loses nothing, and an export of any length
 * needs no memory. A reader that left (`| head`) ends the process quietly, but not as a success: not all
 * of it was written.
 */
export function writeAll(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (fault) {
      const { code } = fault as NodeJS.ErrnoException;
      if (code === "EPIPE") process.exit(EXIT_CLOSED_PIPE);
      if (code !== "EAGAIN") throw fault;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_WAIT_MS);
    }
  }
}

/**
 * Writes an export to a new file, or to stdout where `file` is undefined. Half an export would pass for a whole one:
 * interrupted, no file is made. Answers the exit code; throws what {@link makeNewFile} throws.
 */
export async function writeNewFile(
  terminal: Terminal,
  file: string | undefined,
  write: (write: (text: string) => void) => Promise<void>,
): Promise<number | void> {
  if (file === undefined) return write(terminal.out);
  const { signal } = terminal;
  try {
    return await makeNewFile(file, (descriptor) =>
      write((text) => {
        signal.throwIfAborted();
        writeText(descriptor, text);
      }),
    );
  } catch (fault) {
    if (!signal.aborted || fault !== signal.reason) throw fault;
    fail(terminal, `interrupted: ${printable(file)} was not made`);
    // The signal's reason is the code that a shell expects of it.
    return Number(signal.reason);
  }
}
