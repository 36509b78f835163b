import type { Terminal } from "../shared/command.ts";

/** A line at the bottom of the terminal that is kept up to date, below everything that is printed meanwhile. */
export interface StatusLine extends Disposable {
  /** Prints something above it, by `write`, and redraws it. */
  above(write: () => void): void;
}

/** A countdown in seconds needs no more. */
const REDRAW_MS = 1_000;

/** Goes to the line's beginning and clears it. */
const CLEAR = "\r\u001b[K";

/** What does not fit is cut off instead of wrapped: a wrapped line could not be cleared again. */
const WRAP_OFF = "\u001b[?7l";
const WRAP_ON = "\u001b[?7h";

/** Draws on stderr, and only on a terminal. `line`: what it says now, safe to print. */
export function startStatusLine({ interactive, err, draw = err }: Terminal, line: () => string): StatusLine {
  if (!interactive) return { above: (write) => write(), [Symbol.dispose]() {} };
  const redraw = (): void => draw(`${CLEAR}${WRAP_OFF}${line()}${WRAP_ON}`);
  redraw();
  const timer = setInterval(redraw, REDRAW_MS);
  return {
    above(write) {
      draw(CLEAR);
      write();
      redraw();
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      draw(CLEAR);
    },
  };
}
