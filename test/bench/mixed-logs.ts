import { existsSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench/child";

/** A log of so many mixed events, after the import of so many people, made once a run, in a process of its own: no benchmark inherits its garbage. */
export async function mixedLog(directory: string, events: number, people = 0): Promise<string> {
  const file = join(directory, `mixed-${events}-${people}.sqlite`);
  if (existsSync(file)) return file;
  process.stderr.write(`  writing ${events.toLocaleString("en")} mixed events …\n`);
  const program = join(import.meta.dirname, "mixed-log.ts");
  await outputOf([process.execPath, program, file, String(events), String(people)]);
  return file;
}
