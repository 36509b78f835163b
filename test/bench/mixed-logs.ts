import { existsSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench/child";

/** A log of so many mixed events, made once a run, in a process of its own: no benchmark inherits its garbage. */
export async function mixedLog(directory: string, events: number): Promise<string> {
  const file = join(directory, `mixed-${events}.sqlite`);
  if (existsSync(file)) return file;
  process.stderr.write(`  writing ${events.toLocaleString("en")} mixed events …\n`);
  const program = join(import.meta.dirname, "mixed-log.ts");
  await outputOf([process.execPath, program, file, String(events)]);
  return file;
}
