import type { Folded, Recorded } from "../../../events/catalog.ts";
import type { PauseReason, Usage } from "../../../events/outreach.ts";
import type { RunState } from "../../../projections/run.ts";
import { describeEvent } from "../../history/words.ts";
import { plain } from "../../history/words/phrases.ts";
import type { Terminal } from "../shared/command.ts";
import { printable } from "../shared/table.ts";

const WAITS: Readonly<Record<PauseReason, string>> = {
  pace: "to spread the messages",
  rate_limited: "because X asks to",
  network_unavailable: "because X gives no answer",
  settling: "for X to show what is in doubt",
};

/** What is being followed. */
export function headerLine({ run_id, dry_run, started_at, ...counts }: RunState): string {
  return `${dry_run ? "dry run" : "run"} ${printable(run_id)}, started ${started_at}: ${counted(counts)} so far\n`;
}

/** One event: when, what happened, and to which recipient. */
export function eventLine(event: Recorded): string {
  return `${event.time} ${printable(describeEvent(event))}\n`;
}

/** Where the run stands; `now` in ms since the epoch. */
export function formatStatus(run: RunState | null, now: number): string {
  if (run === null) return "no run is in progress";
  const { waiting, stop_requested_at } = run;
  if (stop_requested_at !== null) return `${counted(run)}; asked to stop`;
  if (waiting === null) return counted(run);
  const left = Math.max(0, Math.ceil((Date.parse(waiting.until) - now) / 1000));
  const until = printable(waiting.until.slice("2026-11-20T".length, "2026-11-20T10:00:00".length));
  return `${counted(run)}; waits until ${until}Z (${duration(left)}) ${WAITS[waiting.reason]}`;
}

/** How a run ended; undefined for an event that ends none. */
export function formatEnd(event: Folded): string | undefined {
  switch (event.type) {
    case "RunFinished": {
      const { reason, usage } = event.data;
      return `${event.time} ended, ${plain(reason)}: ${counted(event.data)}${cost(usage)}\n`;
    }
    case "DryRunFinished": {
      const { reason, would_send, would_skip, usage } = event.data;
      const found = `it would send to ${would_send} and skip ${would_skip}`;
      return `${event.time} ended, ${plain(reason)}: ${found}${cost(usage)}\n`;
    }
    case "RunAbandoned":
      return `${event.time} closed, since its process had died: ${counted(event.data)}\n`;
    default:
      return undefined;
  }
}

function counted({
  sent,
  skipped,
  failed,
  in_doubt,
}: Pick<RunState, "sent" | "skipped" | "failed" | "in_doubt">): string {
  return `${sent} sent, ${skipped} skipped, ${failed} failed, ${in_doubt} in doubt`;
}

function cost(usage: Usage | undefined): string {
  return usage === undefined ? "" : `; cost at most ${usage.usd.toFixed(2)} USD`;
}

/** Whole seconds as a clock shows them, such as 1:02:03. */
function duration(seconds: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}

/** A line at the bottom of the terminal that is kept up to date, below everything that is printed meanwhile. */
interface StatusLine extends Disposable {
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
