import { fileURLToPath } from "node:url";

export interface Program {
  readonly pid: number;
  /** Sends a signal to the program's whole process group, so that a wrapper of the program dies with it. */
  signal(name: NodeJS.Signals): void;
  /** Writes a line to the program's standard input. */
  tell(line: string): void;
  /**
   * Resolves with the first output line of the program for which `matches` holds; rejects if the program ends without
   * one.
   */
  said(matches: (line: string) => boolean): Promise<string>;
  /**
   * Resolves with the first line that the program prints from now on and for which `matches` holds; rejects if the
   * program ends without one.
   */
  next(matches: (line: string) => boolean): Promise<string>;
  /** Kills the program and its process group. Resolves once the program is gone and all of its output was read. */
  kill(): Promise<void>;
  /** Resolves once the program is gone and all of its output was read. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: number | NodeJS.Signals | null }>;
}

export interface ProgramOptions {
  readonly arguments: readonly string[];
  /** Command that takes the program's command as its last arguments, such as `strace`. */
  readonly wrapper?: readonly string[];
  readonly onLine?: (line: string) => void;
}

/** Time without output after which a program counts as hanging; the slowest start takes a second on a busy machine. */
const SILENCE_MS_MAX = 30_000;

/**
 * Starts one of the programs in ./programs. If this process ends first, the program ends as well, because it can no
 * longer write its output.
 */
export function startProgram(name: string, { arguments: args, wrapper = [], onLine }: ProgramOptions): Program {
  const path = fileURLToPath(new URL(`./programs/${name}.ts`, import.meta.url));
  const child = Bun.spawn([...wrapper, process.execPath, path, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  const signal = (name: NodeJS.Signals) => {
    // Sends the signal to the process group, even if the program itself has ended and another member has not. Has no
    // effect if no process is left.
    try {
      process.kill(-child.pid, name);
    } catch {}
  };
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let isOver = false;

  async function takeLines(): Promise<void> {
    let rest = "";
    const silence = setTimeout(() => signal("SIGKILL"), SILENCE_MS_MAX);
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      silence.refresh();
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        lines.push(line);
        onLine?.(line);
      }
      for (const look of waiting) look();
    }
    clearTimeout(silence);
    isOver = true;
    for (const look of waiting) look();
  }

  function lineFrom(first: number, matches: (line: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      let seen = first;
      const look = () => {
        for (; seen < lines.length; seen += 1) {
          const line = lines[seen]!;
          if (!matches(line)) continue;
          waiting.delete(look);
          return resolve(line);
        }
        if (!isOver) return;
        waiting.delete(look);
        reject(new Error(`${name} ended, and its last words were: ${lines.slice(-5).join(" | ")}`));
      };
      waiting.add(look);
      look();
    });
  }

  const taken = takeLines();
  const ended = Promise.all([taken, child.exited]).then(() => ({ code: child.exitCode, signal: child.signalCode }));
  return {
    pid: child.pid,
    ended,
    signal,
    tell(line) {
      void child.stdin.write(`${line}\n`);
      void child.stdin.flush();
    },
    async kill() {
      signal("SIGKILL");
      await ended;
    },
    said: (matches) => lineFrom(0, matches),
    next: (matches) => lineFrom(lines.length, matches),
  };
}
