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

/** Of a process and its children, those included that have ended, in µs: of a PostgreSQL server from its first process on. */
export function timeWithChildren(pid: number): number {
  if (process.platform !== "linux") return 0;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").filter(Boolean);
  const times = children.map((child) => timeIfThere(`/proc/${child}/stat`));
  return times.reduce((sum, time) => sum + time, timeIn(`/proc/${pid}/stat`) + timeOfEnded(`/proc/${pid}/stat`));
}

function timeIfThere(file: string): number {
  try {
    return timeIn(file);
  } catch {
    // It ended meanwhile.
    return 0;
  }
}

/** User and system time in a file of proc(5). */
function timeIn(file: string): number {
  return ticksIn(file, 11);
}

/** The same of the children that have ended. */
function timeOfEnded(file: string): number {
  return ticksIn(file, 13);
}

/** Two fields in µs, counted from behind the name, which may hold anything. */
function ticksIn(file: string, at: number): number {
  const stat = readFileSync(file, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[at]) + Number(fields[at + 1])) * 1_000_000) / TICKS_PER_SECOND;
}
