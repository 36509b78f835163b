import { readdirSync, readFileSync } from "node:fs";

/** Ticks per second in which Linux reports processor time to every program, whichever unit the kernel uses. */
const TICKS_PER_SECOND = 100;

/** Processor time since the start of a process, in µs. */
export interface ProcessorTime {
  /** Processor time of the process's main thread, which serves requests. */
  readonly main: number;
  /** Processor time of all other threads: the log's writer, the runtime's compilers and its garbage collection. */
  readonly others: number;
}

/** Reads the processor time of a process; zeros if the system has no /proc. */
export function processorTimeOf(pid: number): ProcessorTime {
  if (process.platform !== "linux") return { main: 0, others: 0 };
  const main = timeIn(`/proc/${pid}/task/${pid}/stat`);
  return { main, others: timeIn(`/proc/${pid}/stat`) - main };
}

/** Returns the processor time of all threads of a process that the runtime gave that name, in µs. */
export function timeOfThreads(pid: number, name: string): number {
  if (process.platform !== "linux") return 0;
  const times = readdirSync(`/proc/${pid}/task`).map((thread) => {
    try {
      const folder = `/proc/${pid}/task/${thread}`;
      return readFileSync(`${folder}/comm`, "utf8").trim() === name ? timeIn(`${folder}/stat`) : 0;
    } catch {
      // The thread has ended since it was listed.
      return 0;
    }
  });
  return times.reduce((sum, time) => sum + time, 0);
}

/**
 * Returns the time of a process and its present children, in µs; for a PostgreSQL server, `pid` is its first process.
 * Counts nanoseconds, so that short work shows; processes that have ended are left out.
 */
export function timeWithChildren(pid: number): number {
  if (process.platform !== "linux") return 0;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean);
  const threads = [String(pid), ...children].flatMap((each) => threadsIn(`/proc/${each}/task`));
  return threads.reduce((sum, thread) => sum + nanosecondsIn(`${thread}/schedstat`) / 1_000, 0);
}

function threadsIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).map((thread) => `${folder}/${thread}`);
  } catch {
    // The process has ended since it was listed.
    return [];
  }
}

function nanosecondsIn(file: string): number {
  try {
    return Number(readFileSync(file, "latin1").split(" ")[0]);
  } catch {
    // The thread has ended since it was listed.
    return 0;
  }
}

/**
 * Returns the user and system time in a `stat` file of proc(5), in µs. The fields follow the program's name, which ends
 * with the last parenthesis and may hold any characters.
 */
function timeIn(file: string): number {
  const stat = readFileSync(file, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / TICKS_PER_SECOND;
}
