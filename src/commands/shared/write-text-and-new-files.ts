import { writeSync } from "node:fs";
import { styleText } from "node:util";
import { escapeControls } from "../../platform/escape-control-characters.ts";
import { makeNewFile } from "../../platform/new-file.ts";
import { fail, printable, type Style, type Terminal } from "./terminal-answers-and-exit-codes.ts";

/** The exit code that a shell gives a process that SIGPIPE ended: 128 plus the signal's number. */
const EXIT_CLOSED_PIPE = 141;

/** Pause in ms before writing again to a pipe that is full. */
const FULL_PIPE_WAIT_MS = 5;

/**
 * Writes text that may hold words from outside, with all characters escaped that steer a terminal. `style` shows on
 * terminals only, unless NO_COLOR or FORCE_COLOR says otherwise.
 */
export function writeText(descriptor: number, text: string, style?: Style): void {
  const harmless = escapeControls(text);
  const stream = descriptor === 2 ? process.stderr : process.stdout;
  writeAll(descriptor, style === undefined ? harmless : styleText(style, harmless, { stream }));
}

/**
 * Writes all of `text` and waits for a slow reader, so an exit right after it loses nothing. If the reader has closed
 * the pipe, as `head` does, the process ends without a message, but not with exit code 0.
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
 * Writes an export to a new file, or to stdout if `file` is undefined. Makes no file if interrupted, because half an
 * export would pass for a whole one. Returns the exit code; throws what {@link makeNewFile} throws.
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
    fail(terminal, `interrupted: ${printable(file)} was not written`);
    // The signal's reason is the exit code that a shell expects for it.
    return Number(signal.reason);
  }
}
