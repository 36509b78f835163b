import { readdirSync, readFileSync } from "node:fs";
import type { Program } from "./start-program.ts";

/**
 * Stops programs, and resolves once all of their threads stand still. By then, no fsync is under way: the simulated
 * power cut would let an fsync that it interrupts report success, which no real disk does.
 */
export async function freeze(programs: readonly Program[]): Promise<void> {
  for (const program of programs) program.signal("SIGSTOP");
  while (!programs.every(({ pid }) => isFrozen(pid))) await Bun.sleep(1);
}

function isFrozen(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((thread) => stateOf(`/proc/${pid}/task/${thread}/stat`) === "T");
}

/**
 * Returns the state of a thread from its `stat` file in /proc. The state follows the program's name, which is in
 * parentheses and may hold any characters.
 */
function stateOf(statFile: string): string | undefined {
  const stat = readFileSync(statFile, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2)[0];
}
