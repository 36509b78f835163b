import { readdirSync, readFileSync } from "node:fs";

/** What Linux counts processor time in, a second: so it says to every program, whatever the kernel counts in. */
const TICKS_PER_SECOND = 100;

/** Processor time since the start of a process, in µs. */
export interface ProcessorTime {
  /** Of the thread that serves requests. */
  readonly main: number;
  /** Of all others: the log's writer, the runtime's compilers and its garbage collection. */
  readonly others: number;
}

/** Zero where the system has no /proc. */
export function processorTimeOf(pid: number): ProcessorTime {
  if (process.platform !== "linux") return { main: 0, others: 0 };
  const main = timeIn(`/proc/${pid}/task/${pid}/stat`);
  return { main, others: timeIn(`/proc/${pid}/stat`) - main };
}

/** Of all threads of that name, of which each has the one that the runtime gave it. */
export function timeOfThreads(pid: number, name: string): number {
  if (process.platform !== "linux") return 0;
  const times = readdirSync(`/proc/${pid}/task`).map((thread) => {
    try {
      const folder = `/proc/${pid}/task/${thread}`;
      return readFileSync(`${folder}/comm`, "utf8").trim() === name ? timeIn(`${folder}/stat`) : 0;
    } catch {
      // It ended meanwhile.
      return 0;
    }
  });
  return times.reduce((sum, time) => sum + time, 0);
}

/**
 * Of a process and its children as they are now, in µs: of a PostgreSQL server from its first process on. To the
 * nanosecond, so that short work counts; what has ended meanwhile is left out.
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
    // The process ended meanwhile.
    return [];
  }
}

function nanosecondsIn(file: string): number {
  try {
    return Number(readFileSync(file, "latin1").split(" ")[0]);
  } catch {
    // The thread ended meanwhile.
    return 0;
  }
}

/** User and system time in a file of proc(5); the name that stands before them may hold anything. */
function timeIn(file: string): number {
  const stat = readFileSync(file, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / TICKS_PER_SECOND;
}
