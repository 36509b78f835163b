import type { Terminal } from "./command.ts";

/** A line on the terminal that says how far a long work is. */
export interface Progress {
  update(done: number): void;
  /** Removes the line. */
  end(): void;
}

const WIDTH = 30;

/** Redrawing more often costs time and shows nothing more. */
const REDRAW_MS = 100;

/** Draws on stderr, and only on a terminal: a script's output stays clean. `from`: what was done before this start. */
export function startProgress(
  { interactive, err, draw = err }: Terminal,
  what: string,
  total: number,
  from = 0,
): Progress {
  if (!interactive) return { update() {}, end() {} };
  const startedAt = performance.now();
  let drawnAt = 0;
  return {
    update(done) {
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS && done < total) return;
      drawnAt = now;
      draw(`\r${line(what, done, total, (now - startedAt) / 1000, from)}`);
    },
    end() {
      draw("\r\x1b[K");
    },
  };
}

/** The bar, the rate and the time left. */
function line(what: string, done: number, total: number, seconds: number, from = 0): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const bar = "█".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, "░");
  const rate = seconds > 0 ? (done - from) / seconds : 0;
  const left = rate > 0 ? `${Math.ceil(Math.max(0, total - done) / rate)} s left` : "";
  return `${what} ${bar} ${Math.floor(share * 100)} % · ${Math.round(rate).toLocaleString("en")}/s ${left}`;
}
