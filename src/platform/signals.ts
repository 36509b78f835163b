import { once } from "node:events";
import type { Sleep } from "./clock-ids-and-timers.ts";

/** Exit codes that a shell gives a process which a signal ended: 128 plus the signal's number. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

type SignalName = keyof typeof EXIT_CODES;

/**
 * Time within which a repeated signal counts once. Ctrl-C and supervisors send it to the whole process group, and `bun
 * run` passes on a copy milliseconds later. An impatient operator presses again after a second.
 */
const SAME_SIGNAL_MS = 1_000;

interface SignalDeps {
  on(signal: SignalName, listener: () => void): void;
  exit(code: number): void;
  /** Returns the time of a monotonic clock, in ms. */
  now(): number;
}

/**
 * Watches for the signals that ask the process to end. If a command has read `signal`, it aborts, and the command ends
 * the process in order. If no command has read it, or when asked a second time, the process ends at once.
 */
export function watchSignals({ on, exit, now }: SignalDeps) {
  const interrupted = new AbortController();
  let isRepeatable = false;
  let askedAt = 0;
  for (const [signal, code] of Object.entries(EXIT_CODES) as [SignalName, number][]) {
    on(signal, () => {
      if (!isRepeatable) return exit(code);
      if (interrupted.signal.aborted) {
        if (now() - askedAt >= SAME_SIGNAL_MS) exit(code);
        return;
      }
      askedAt = now();
      // The reason of the abort is the exit code, for commands that fail when they are interrupted.
      interrupted.abort(code);
    });
  }
  return {
    get signal(): AbortSignal {
      isRepeatable = true;
      return interrupted.signal;
    },
  };
}

/** Resolves once the signal has aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

/** Begins work in the background. Disposing it aborts its signal and waits until it ends. */
export function workUntilDisposed(work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const stopping = new AbortController();
  const working = work(stopping.signal);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await working;
    },
  };
}

/** Repeats work in the background: first after `ms`, then `ms` after each end. */
export function repeatUntilDisposed(sleep: Sleep, ms: number, work: () => Promise<unknown>): AsyncDisposable {
  return workUntilDisposed(async (signal) => {
    for (;;) {
      await sleep(ms, signal);
      if (signal.aborted) return;
      await work();
    }
  });
}
