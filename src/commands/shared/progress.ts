import { grouped } from "../../platform/format-numbers-and-lists.ts";
import type { WorkMonitor } from "../../log/progress-and-cancellation.ts";
import type { Terminal } from "./terminal-answers-and-exit-codes.ts";

/** A line on the terminal that shows the progress of long work. `end` removes it. */
export type Progress = ReturnType<typeof startProgress>;

const WIDTH = 30;

/** Minimum time in ms between two drawings of a progress line. Drawing more often takes time and shows nothing more. */
const REDRAW_MS = 100;

/**
 * Starts a progress line on stderr, but only on a terminal, so that a script's output has none. `from`: the amount of
 * work done before this start.
 */
export function startProgress({ interactive, err, draw = err }: Terminal, what: string, total: number, from = 0) {
  if (!interactive) return { update(_done: number) {}, end() {} };
  const startedAt = performance.now();
  let drawnAt = 0;
  return {
    update(done: number) {
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS && done < total) return;
      drawnAt = now;
      draw(`\r${line(what, done, total, (now - startedAt) / 1000, from)}`);
    },
    end() {
      draw(CLEAR);
    },
  };
}

/** Runs `work` and shows its progress on the terminal until it ends. */
export async function withProgress<Result>(
  terminal: Terminal,
  what: string,
  total: number,
  work: (onProgress: (done: number) => void) => Promise<Result>,
): Promise<Result> {
  const progress = startProgress(terminal, what, total);
  try {
    return await work(progress.update);
  } finally {
    progress.end();
  }
}

/**
 * Creates the monitor by which long work shows its progress and warnings on this terminal, and learns if the operator
 * has interrupted it.
 */
export function monitorOn(terminal: Terminal): WorkMonitor {
  return {
    showProgress: (what, total, work) => withProgress(terminal, what, total, work),
    warn: (sentence) => terminal.err(`${sentence}\n`),
    isInterrupted: () => terminal.signal.aborted,
  };
}

function line(what: string, done: number, total: number, seconds: number, from = 0): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const bar = "█".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, "░");
  const rate = seconds > 0 ? (done - from) / seconds : 0;
  const left = rate > 0 ? `${Math.ceil(Math.max(0, total - done) / rate)} s left` : "";
  return `${what} ${bar} ${Math.floor(share * 100)} % · ${grouped(Math.round(rate))}/s ${left}`;
}

/** Time between two drawings of a status line: short enough for a countdown in seconds. */
const STATUS_REDRAW_MS = 1_000;

/** Control sequence that moves to the line's beginning and clears the line. */
const CLEAR = "\r\x1b[K";

/**
 * Control sequence that makes the terminal cut off a line that is too long. A wrapped line could not be cleared again.
 */
const WRAP_OFF = "\x1b[?7l";
const WRAP_ON = "\x1b[?7h";

/**
 * Keeps a line at the bottom of the terminal up to date, below what `above` prints. It is drawn on stderr, and only on
 * a terminal. `line`: returns the current text, which must be safe to print.
 */
export function startStatusLine({ interactive, err, draw = err }: Terminal, line: () => string) {
  if (!interactive) return { above: (write: () => void): void => write(), [Symbol.dispose]() {} };
  const redraw = (): void => draw(`${CLEAR}${WRAP_OFF}${line()}${WRAP_ON}`);
  redraw();
  const timer = setInterval(redraw, STATUS_REDRAW_MS);
  return {
    above(write: () => void): void {
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
